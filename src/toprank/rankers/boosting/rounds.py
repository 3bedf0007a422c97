"""`Rounds`: one booster that XGBoost grows, round by round, on gradients that are computed here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from toprank._core.interrupts import interrupts_held_back
from toprank._core.sampling import draw_rows
from toprank._core.surrogates import to_fixed_point
from toprank.errors import InputError
from toprank.rankers.boosting.losses import CHUNK, THIS_PROCESS, Loss, RowSums, Slopes
from toprank.rankers.boosting.xgboost_trees import trees_from_json
from toprank.tree.additive import AdditiveTrees

FLOAT32_BITS = 24
FEW_CATEGORIES, ALL_CATEGORIES = 4, 2**20
"""Columns with fewer categories are split into one category and the others, columns with more into two sets. Odd rounds
use XGBoost's default, even rounds split off one category at a time: with few positives, a set collects categories that
look good by chance, and single categories need many splits where several are alike. Taking turns beats either."""

STEPS = (1e-3, 4.0)
"""Shortest and longest step of the line search, as the largest change of a score. The surrogate may keep falling along
a tree that separates the classes, so that there is no best step."""


@dataclass(frozen=True)
class Settings:
    """How a booster is grown."""

    parameters: dict[str, Any]  # XGBoost's own
    loss_of: Callable[[int], Loss]  # loss_of(round) -> Loss, rounds counted from 0
    subsample: float  # share of the cases that a round sees
    seed: int
    # True: algorithm 1 of the paper, regression trees on the gradients, and the step along each tree that minimises the
    # loss. False: Newton steps, with the bound on the curvature.
    line_search: bool = False
    # What the steps of the line search are multiplied by; XGBoost does that itself with Newton steps
    shrinkage: float = 1.0
    weight_unit: float = 1.0  # what weights are multiplied by: XGBoost's penalties are in cases (`weight_unit`)


@dataclass(frozen=True)
class Rows:
    """Encoded rows for XGBoost: float array (n, n_features), labels and weights, and "q" or "c" for each column."""

    X: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray
    types: list[str]
    # Of rows that are spread over workers: the number, in the whole table, of the first row of each run of rows that
    # follow one another, and how many there are. None: these rows are the whole table.
    runs: list[tuple[int, int]] | None = None
    bins: Any = None  # a table whose bins are used; None = quantiles of these rows
    # float64 (n,) or None: log-odds that boosting starts from; None = those of all cases
    margin: np.ndarray | None = None

    def to_xgboost(self, parameters: dict[str, Any], like: Any = None) -> Any:
        """The rows as XGBoost stores them; in the bins of another table, if one is given."""
        xgboost = import_xgboost()
        few = {"max_bin": parameters["max_bin"], "nthread": parameters["nthread"]}
        X = single_precision(self.X)
        with interrupts_held_back():  # XGBoost asks for the rows in a callback, where Ctrl-C would be lost
            return xgboost.QuantileDMatrix(
                X, feature_types=self.types, enable_categorical=True, ref=like or self.bins, **few
            )


def import_xgboost() -> Any:
    """The package XGBoost; raises ImportError, which names the extra, if it is not installed."""
    try:
        import xgboost
    except ImportError:
        raise ImportError(
            "Boosting needs XGBoost, which is not installed. Hint: pip install 'toprank[boosting]'."
        ) from None
    return xgboost


def single_precision(X: np.ndarray) -> np.ndarray:
    """Rows as float32; numbers out of its range become its largest ones: no threshold tells them apart."""
    most = float(np.finfo(np.float32).max)
    with np.errstate(over="ignore"):
        return np.clip(X, -most, most).astype(np.float32)  # NaN stays NaN


class Rounds:
    """A booster, its training rows, and optionally other rows that it scores after every round.

    `score`, float (n,), is what the trees add to the training rows, as XGBoost adds it up.
    """

    start: Any = None  # the `Start` that the margins of the rows come from

    def __init__(self, rows: Rows, settings: Settings, others: Rows | None = None, all_rows: RowSums = THIS_PROCESS):
        self.settings, self.all_rows = settings, all_rows
        self._train = rows.to_xgboost(settings.parameters)
        self._others = None if others is None else others.to_xgboost(settings.parameters, self._train)
        tables = [self._train] if self._others is None else [self._train, self._others]
        self._booster = import_xgboost().Booster(settings.parameters, tables)
        self._is_positive, self._weight = rows.is_positive, rows.weight * settings.weight_unit
        self._has_categories = "c" in rows.types
        self._pieces = pieces_of(rows.runs or [(0, len(rows.X))])
        sums = [all_rows.sum(self._weight[of_class]) for of_class in (self._is_positive, ~self._is_positive)]
        self._base = math.log(sums[0]) - math.log(sums[1]) if rows.margin is None else rows.margin
        self._other_base = None if others is None else others.margin
        self.n_rounds = 0
        self.score: np.ndarray = np.zeros(len(rows.X), np.float32)
        self._margin = np.empty(len(rows.X))
        self._other_score = None if others is None else np.zeros(len(others.X))
        self._gammas: list[float] = []

    def step(self) -> None:
        """Grow one more tree."""
        loss, weight = self.settings.loss_of(self.n_rounds), self._draw()
        slopes = loss.slopes(self._margins(), self._is_positive, weight, self.all_rows)
        if self.settings.line_search:  # regression trees on the gradient
            slopes = Slopes(slopes.gradient, weight)
        to_fixed_points(slopes, self.all_rows)
        if self._has_categories:
            self._booster.set_param("max_cat_to_onehot", FEW_CATEGORIES if self.n_rounds % 2 == 0 else ALL_CATEGORIES)
        before = self._outputs() if self.settings.line_search else None
        self._booster.boost(self._train, iteration=self.n_rounds, grad=slopes.gradient, hess=slopes.curvature)
        after = self._outputs()
        if before is None:
            self.score = after[0]
            self._other_score = after[1].astype(np.float64) if len(after) > 1 else None
        else:
            self._search(loss, weight, [new.astype(np.float64) - old for new, old in zip(after, before, strict=True)])
        self.n_rounds += 1  # an interrupted round does not count

    def _draw(self) -> np.ndarray:
        """Weights of the cases of this round, 0 for those that were not drawn; some of each class."""
        if self.settings.subsample >= 1.0:
            return self._weight
        drawn, settings = np.empty(len(self._weight)), self.settings

        def draw(first: int, rows: slice) -> tuple[int, int]:
            cases = self._weight[rows], self._is_positive[rows], drawn[rows]
            return draw_rows(settings.seed, self.n_rounds, first, settings.subsample, *cases)

        found = self.all_rows.threads.run(draw, *zip(*self._pieces, strict=True)) if self._pieces else []
        counts = self.all_rows.total(np.array([(0, 0), *found]).sum(axis=0))
        for count, rows in zip(counts, (~self._is_positive, self._is_positive), strict=True):
            if count == 0:  # a rare class, and bad luck: it takes part as a whole
                drawn[rows] = self._weight[rows]
        return drawn

    def _margins(self) -> np.ndarray:
        """Log-odds of the training rows: where they start plus what the trees add; float64, overwritten every round."""
        base = np.broadcast_to(self._base, self.score.shape)
        self.all_rows.over(
            len(base), lambda rows: np.add(self.score[rows], base[rows], out=self._margin[rows], dtype=np.float64)
        )
        return self._margin

    def _outputs(self) -> list[np.ndarray]:
        """What the trees add to the training rows and to the others, float32 as XGBoost adds it up."""
        tables = [table for table in (self._train, self._others) if table is not None]
        return [self._booster.predict(table, output_margin=True) for table in tables]

    def _search(self, loss: Loss, weight: np.ndarray, tree: list[np.ndarray]) -> None:
        """Go along the new tree as far as the loss falls (gamma of algorithm 1)."""
        of_all, _ = self.all_rows.gather(np.column_stack((self._margins(), tree[0], self._is_positive, weight)))
        kept = of_all[of_all[:, 3] > 0].T
        part = kept[0].copy(), kept[1].copy(), kept[2] == 1, kept[3].copy()
        size = max(float(np.abs(part[1]).max(initial=0.0)), float(np.finfo(np.float32).tiny))
        found = minimize_scalar(
            lambda log: loss.value(part[0] + math.exp(log) / size * part[1], part[2], part[3]),
            bounds=[math.log(step) for step in STEPS], method="bounded", options={"xatol": 1e-3},
        )  # fmt: skip
        gamma = float(np.float32(self.settings.shrinkage * math.exp(found.x) / size))
        self._gammas.append(gamma)
        self.score = self.score + gamma * tree[0]
        if self._other_score is not None:
            self._other_score = self._other_score + gamma * tree[1]

    @property
    def other_score(self) -> np.ndarray:
        """Scores of the other rows, float64."""
        assert self._other_score is not None
        return self._other_score if self._other_base is None else self._other_base + self._other_score

    def trees(self) -> AdditiveTrees:
        """The trees so far."""
        return trees_from_json(self.to_json(), self._train.num_col())

    def to_json(self) -> bytes:
        """The booster as XGBoost writes it, with the steps of the line search in the leaves."""
        is_whole = self._booster.num_boosted_rounds() == self.n_rounds
        booster = self._booster if is_whole else self._booster[: self.n_rounds]
        raw = bytes(booster.save_raw("json"))
        if not self._gammas:
            return raw
        model = json.loads(raw)
        trees = model["learner"]["gradient_booster"]["model"]["trees"]
        for tree, gamma in zip(trees, self._gammas[: self.n_rounds], strict=True):
            values = np.array(tree["split_conditions"], np.float32)
            is_leaf = np.array(tree["left_children"]) == -1
            values[is_leaf] *= np.float32(gamma)
            tree["split_conditions"] = [float(str(value)) for value in values]
        return json.dumps(model).encode()


def pieces_of(runs: Sequence[tuple[int, int]]) -> list[tuple[int, slice]]:
    """Runs of rows, given by the number of their first row and their size, in pieces that threads can share.

    Examples
    --------
    >>> pieces_of([(40, 3), (0, 2)])
    [(40, slice(0, 3, None)), (0, slice(3, 5, None))]
    """
    pieces, start = [], 0
    for first, size in runs:
        for at in range(0, size, CHUNK):
            pieces.append((first + at, slice(start + at, start + min(at + CHUNK, size))))
        start += size
    return pieces


def to_fixed_points(slopes: Slopes, all_rows: RowSums = THIS_PROCESS) -> None:
    """Round slopes to fixed point, in place.

    All gradients are multiples of one power of 2, and so are all curvatures. XGBoost's sums, in double precision, are
    then exact in any order: the same trees grow with any number of threads and workers.
    """

    def round_in_place(values: np.ndarray) -> None:
        n = len(values)
        ends = [(0.0, 0.0), *all_rows.over(n, lambda rows: (values[rows].max(), -values[rows].min()))]
        most = float(all_rows.largest(np.array([np.max(ends)]))[0])  # NaN if there is one
        if not math.isfinite(most):
            raise InputError("The loss has no finite gradient. Hint: use a smaller learning rate or alpha.")
        unit = math.ldexp(1.0, max(math.frexp(most)[1] - FLOAT32_BITS, -126))
        all_rows.over(n, lambda rows: to_fixed_point(values[rows], np.float32(1 / unit), np.float32(unit)))

    round_in_place(slopes.gradient)
    round_in_place(slopes.curvature)
