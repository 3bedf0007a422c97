"""`fit_at_costs`: one model per cost ratio, of any classifier, by weights or by sampling; `CostPath` holds them.

The baselines of the cost-optimal curve: CART and other classifiers refitted for each cost (section 5.3), and over-
and undersampling and SMOTE at the same ratios (appendix F).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from toprank._compat import n_samples, take_rows
from toprank.data.frames import backend_of, make_frame
from toprank.data.shared_table import SharedTable
from toprank.errors import InputError
from toprank.metrics.checks import is_int
from toprank.metrics.operating_points import OperatingPoints
from toprank.rankers.reading import as_read_by
from toprank.rankers.seeds import seed_of
from toprank.rankers.validation import check_classes, check_labels, check_weights

WAYS = ("weight", "oversample", "undersample", "smote")
"""How a cost ratio reaches a classifier."""

NEIGHBOURS = 5
"""Neighbours that SMOTE interpolates with, as in its paper; fewer if the class has fewer rows."""


@dataclass(frozen=True, eq=False)
class CostPath:
    """Models fitted at several cost ratios.

    Attributes
    ----------
    cost_ratios : float64 array of shape (m,)
        Cost of a false positive, where a false negative costs 1: lambda of the paper.
    models : list of fitted classifiers
        One per cost ratio.
    pos_label : label of the positive class
    """

    cost_ratios: np.ndarray
    models: list[Any]
    pos_label: Any

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        ends = f"{self.cost_ratios.min():.3g} to {self.cost_ratios.max():.3g}"
        return f"<CostPath: {len(self)} models of {type(self.models[0]).__name__}, cost ratios {ends}>"

    @property
    def n_leaves(self) -> np.ndarray | None:
        """Leaves of each model, int64 (m,); None if the models are not trees."""
        sizes = [_n_leaves(last_step(model)[1]) for model in self.models]
        return None if None in sizes else np.array(sizes, np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """Class that each model gives each row, (m, n): its label of least cost where it has one and no budget."""
        table = SharedTable(X)
        return np.stack([np.asarray(model.predict(as_read_by(model, table))) for model in self.models])

    def points(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> OperatingPoints:
        """Return the errors of each model on these cases."""
        return OperatingPoints.from_labels(
            y, self.predict(X), cost_ratio=self.cost_ratios, sample_weight=sample_weight, pos_label=self.pos_label
        )


def fit_at_costs(
    estimator: Any,
    X: Any,
    y: Any,
    cost_ratios: ArrayLike,
    *,
    by: str = "weight",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> CostPath:
    """Fit one clone of a classifier per cost ratio.

    Parameters
    ----------
    estimator : classifier or Pipeline that ends in one
    X : array or data frame of shape (n, n_features)
    y : array of shape (n,)
        Labels with two values.
    cost_ratios : array-like of shape (m,)
        Costs of a false positive, where a false negative costs 1; above 0. `cost_ratios_around` makes some.
    by : {"weight", "oversample", "undersample", "smote"}, default "weight"
        weight: each row is weighted by the cost of a mistake on it; a classifier with a parameter `fp_cost`, such as
        `TAOTree` and `CostTree`, gets the cost itself. The others fit rows sampled to the ratio of the costs, negatives
        * cost ratio to positives. oversample: rows of the costlier class are repeated, all equally often give or take
        one. undersample: rows of the cheaper class are dropped, the same ones first along a path. smote: rows of the
        costlier class are added between neighbours of that class, in the units of X, by imbalanced-learn, which needs
        numbers without missing values.
    sample_weight : array-like of shape (n,), optional
        Weights of cases; a row keeps its weight when it is sampled.
    pos_label : optional
        The positive label; by default the classifier's own `pos_label` if it has one, else that of a usual pair, such
        as yes of yes/no, else the larger.
    random_state : int, RandomState or None
        Seed of the sampling, fixed for None.
    n_jobs : int or None
        Models fitted in parallel.

    References
    ----------
    .. [1] Gabidolla, Zharmagambetov, Carreira-Perpiñán. Beyond the ROC curve: classification trees using cost-optimal
       curves, with application to imbalanced datasets. ICML 2024. Section 5.3, appendix F.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from toprank import cost_ratios_around, fit_at_costs
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    >>> path = fit_at_costs(stump, X[::2], y[::2], cost_ratios_around(y, n=5, cost_factor=3.0))
    >>> points = path.points(X[1::2], y[1::2])
    >>> points.false_positives.astype(int), points.false_negatives.astype(int)
    (array([27, 21, 13,  8,  8]), array([ 3, 11, 17, 26, 26]))
    """
    ratios = _check_ratios(cost_ratios)
    if by not in WAYS:
        raise InputError(
            f"The 'by' parameter of fit_at_costs must be one of {', '.join(WAYS)}. Got {by!r} instead. "
            "Hint: weight is exact, the others are samples."
        )
    labels = check_labels(y, n_samples(X), "fit_at_costs")
    if pos_label is None:
        pos_label = last_step(estimator)[1].get_params(deep=False).get("pos_label")
    classes, positive_index = check_classes(labels, pos_label, "fit_at_costs")
    is_positive = labels == classes[positive_index]
    weight = check_weights(sample_weight, is_positive, "fit_at_costs")
    _check_way(estimator, by, weight)
    if by == "smote":
        _check_numbers(X)
    seed = seed_of(random_state)
    task = _Task(estimator, X, y, is_positive, weight, classes, positive_index, by, seed)
    table = SharedTable(X) if effective_n_jobs(n_jobs) == 1 else X  # it is not for several threads
    models = Parallel(n_jobs=n_jobs)(delayed(task.fit)(ratio, table) for ratio in ratios.tolist())
    return CostPath(ratios, models, classes[positive_index])


def cost_ratios_around(
    y: Any, n: int = 15, cost_factor: float = 1.5, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> np.ndarray:
    """Return ascending cost ratios lambda_0 * cost_factor**j, j from -(n // 2), lambda_0 = positives / negatives: (n,).

    At lambda_0 both classes cost the same in total, the base cost of section H.1.1; 1.5 is the paper's factor.

    Examples
    --------
    >>> cost_ratios_around([0, 0, 0, 0, 1, 1], n=3, cost_factor=2.0)
    array([0.25, 0.5 , 1.  ])
    """
    if not is_int(n) or n < 1:
        raise InputError(f"The 'n' parameter of cost_ratios_around must be an int, 1 or more. Got {n!r} instead.")
    if not np.isfinite(cost_factor) or cost_factor <= 1:
        raise InputError(
            f"The 'cost_factor' parameter of cost_ratios_around must be a float above 1. Got {cost_factor!r} instead. "
            "Hint: each ratio is cost_factor times the one before."
        )
    labels = check_labels(y, n_samples(y), "cost_ratios_around")
    classes, positive_index = check_classes(labels, pos_label, "cost_ratios_around")
    is_positive = labels == classes[positive_index]
    weight = check_weights(sample_weight, is_positive, "cost_ratios_around")
    weight = np.ones(len(labels)) if weight is None else weight
    base = float(weight[is_positive].sum() / weight[~is_positive].sum())
    return base * float(cost_factor) ** (np.arange(n) - n // 2)


# --- one model --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """What the fits of one path share."""

    estimator: Any
    X: Any
    y: Any
    is_positive: np.ndarray
    weight: np.ndarray | None
    classes: np.ndarray
    positive_index: int
    by: str
    seed: int

    def fit(self, ratio: float, table: Any) -> Any:
        """A fitted clone for one cost ratio; `table` stands for X where all rows are taken as they are."""
        model, (prefix, last) = clone(self.estimator), last_step(self.estimator)
        known, is_weighted = last.get_params(deep=False), self.by == "weight"
        told = {"fp_cost": ratio if is_weighted else 1.0, "fn_cost": 1.0} if "fp_cost" in known else {}
        told["pos_label"] = self.classes.tolist()[self.positive_index]
        model.set_params(**{prefix + name: value for name, value in told.items() if name in known})
        X, y, weight = self._rows(ratio)
        X = as_read_by(model, table) if X is self.X else X
        if is_weighted and "fp_cost" not in known:
            weight = np.where(self.is_positive, 1.0, ratio) * (1.0 if weight is None else weight)
        return model.fit(X, y, **({} if weight is None else {f"{prefix}sample_weight": weight}))

    def _rows(self, ratio: float) -> tuple[Any, Any, np.ndarray | None]:
        """Return the rows to fit on, their labels and weights."""
        if self.by == "weight" or ratio == 1.0:
            return self.X, self.y, self.weight
        if self.by == "smote":
            return *self._with_new_rows(ratio), None
        rows = np.repeat(np.arange(len(self.is_positive)), copies(self.is_positive, ratio, self.by, self.seed))
        weight = None if self.weight is None else self.weight[rows]
        return take_rows(self.X, rows), take_rows(self.y, rows), weight

    def _with_new_rows(self, ratio: float) -> tuple[Any, Any]:
        """Return all rows, and new ones of the costlier class."""
        from imblearn.over_sampling import SMOTE

        grows = self.is_positive if ratio < 1 else ~self.is_positive
        n_rows = int(grows.sum())
        if n_rows == 1:
            raise InputError(
                f"fit_at_costs with by='smote' puts new rows between two of a class, but at a cost ratio of {ratio:g} "
                f"the {'positive' if ratio < 1 else 'negative'} class has only one. Hint: use by='oversample'."
            )
        wanted = {1: round(n_rows * max(ratio, 1 / ratio))}
        smote = SMOTE(sampling_strategy=wanted, k_neighbors=min(NEIGHBOURS, n_rows - 1), random_state=self.seed)
        backend, X = backend_of(self.X), self.X
        if backend is not None:
            frame = nw.from_native(X, eager_only=True)
            X = frame.to_numpy()
        X, is_grown = smote.fit_resample(X, grows.astype(int))
        if backend is not None:
            X = make_frame({name: X[:, i] for i, name in enumerate(frame.columns)}, backend)
        is_positive = is_grown == (1 if ratio < 1 else 0)
        return X, self.classes[np.where(is_positive, self.positive_index, 1 - self.positive_index)]


def copies(is_positive: np.ndarray, ratio: float, by: str, seed: int) -> np.ndarray:
    """Return how often to take each row so that the classes have the ratio of their costs: int64 (n,).

    Along a path of ratios the same rows are added first, or dropped last. `by` is "oversample" or "undersample".

    Examples
    --------
    >>> import numpy as np
    >>> is_positive = np.array([True, True, False, False, False, False])
    >>> copies(is_positive, 0.4, "oversample", seed=0)  # 5 positives to 4 negatives: 2 to 4 * 0.4
    array([3, 2, 1, 1, 1, 1])
    >>> copies(is_positive, 0.4, "undersample", seed=0)
    array([1, 1, 1, 0, 1, 0])
    """
    changes = is_positive if (ratio < 1) == (by == "oversample") else ~is_positive
    factor = max(ratio, 1 / ratio) if by == "oversample" else min(ratio, 1 / ratio)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(changes))
    wanted = max(round(factor * len(rows)), 1)
    times = np.ones(len(is_positive), np.int64)
    times[rows] = wanted // len(rows)
    times[rows[: wanted % len(rows)]] += 1
    return times


def last_step(estimator: Any) -> tuple[str, Any]:
    """Return the parameter prefix of the last step of a pipeline, and that step; any other estimator itself."""
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def _n_leaves(model: Any) -> int | None:
    """Return the number of leaves of a tree; None for anything else."""
    if hasattr(model, "n_leaves_"):
        return int(model.n_leaves_)
    return int(model.get_n_leaves()) if hasattr(model, "get_n_leaves") else None


# --- checks -----------------------------------------------------------------------------------------------------


def _check_ratios(cost_ratios: ArrayLike) -> np.ndarray:
    """Return the cost ratios as floats above 0."""
    ratios = np.array(cost_ratios, np.float64)
    if ratios.ndim != 1 or len(ratios) == 0 or not (np.isfinite(ratios) & (ratios > 0)).all():
        raise InputError(
            f"The 'cost_ratios' parameter of fit_at_costs must be a list of finite numbers above 0. Got "
            f"{cost_ratios!r} instead. Hint: cost_ratios_around(y) makes some."
        )
    return ratios


def _check_numbers(X: Any) -> None:
    """Raise an error if a column has values that are not numbers: SMOTE interpolates between rows."""
    if backend_of(X) is not None:
        frame = nw.from_native(X, eager_only=True)
        columns = [(f"column {c.name!r}", c.to_list()) for c in frame.iter_columns() if not c.dtype.is_numeric()]
    else:
        matrix = np.asarray(X)
        is_doubtful = matrix.ndim == 2 and matrix.dtype.kind not in "biuf"
        columns = [(f"column {i}", matrix[:, i].tolist()) for i in range(matrix.shape[1])] if is_doubtful else []
    for name, values in columns:
        wrong = next((value for value in values if not _is_number(value)), None)
        if wrong is not None:
            raise InputError(
                f"fit_at_costs with by='smote' needs a table of numbers, but {name} of X has the value {wrong!r}. "
                "Hint: encode such columns first, or use by='oversample'."
            )


def _is_number(value: Any) -> bool:
    """Return True if a value of a table is a number, the text of one, or missing."""
    try:
        float(np.nan if value is None else value)
    except (TypeError, ValueError):
        return False
    return True


def _check_way(estimator: Any, by: str, weight: np.ndarray | None) -> None:
    """Raise an error if an estimator cannot take the cost, or the weights, this way."""
    last = last_step(estimator)[1]
    name = type(last).__name__
    parameters = inspect.signature(last.fit).parameters.values()
    takes_weight = any(p.name == "sample_weight" or p.kind == p.VAR_KEYWORD for p in parameters)
    has_cost = "fp_cost" in last.get_params(deep=False)
    if not takes_weight and (weight is not None or (by == "weight" and not has_cost)):
        raise InputError(
            f"fit_at_costs needs a classifier whose fit takes sample_weight, but that of {name} does not. "
            "Hint: by='oversample' works without weights."
        )
    if by == "smote":
        if weight is not None:
            raise InputError(
                "fit_at_costs with by='smote' takes no sample_weight: the rows that SMOTE makes have none. "
                "Hint: use by='oversample'."
            )
        try:
            import imblearn  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "fit_at_costs with by='smote' needs the package 'imbalanced-learn', which is not installed. "
                'Hint: pip install "toprank[experiment]".'
            ) from error
