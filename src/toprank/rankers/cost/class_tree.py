"""`ClassTree`: a tree whose leaves have one of several classes, with labels, rules, text and plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import ClassRule, TreeWalk, Visit, Way, path_conditions, rule_table
from toprank.explain.paths import ways_up
from toprank.export import WIDTH, block_lines, question
from toprank.files.model_file import facts_of, model_of, with_prefix, without_prefix
from toprank.metrics.intervals import proportion_interval
from toprank.rankers.binned import BinnedReader, OneTree
from toprank.tree.columns import Column
from toprank.tree.structure import Tree, check_columns, check_depth
from toprank.words.counts import plural
from toprank.words.numbers import number_text, percent_text
from toprank.words.wording import EXACT, SHORT, Detail, is_cut, shortened_lines, shortenings

ARRAYS: dict[str, Any] = {
    "label": np.int64,
    "class_counts": np.float64,
    "costs": np.float64,
    "objective_path": np.float64,
}
"""Fitted arrays of a `ClassTree` besides those of its tree."""

FIGURES = ("n", "of_class", "share", "share_low", "share_high", "coverage")
"""Figures of a leaf in `rules`."""


class ClassTree(ClassifierMixin, OneTree, BinnedReader):
    """Base of the single-tree classifiers; a subclass finds the tree and the classes of its leaves in `fit`."""

    classes_: np.ndarray
    data_hash_: str

    label_: np.ndarray
    class_counts_: np.ndarray
    costs_: np.ndarray
    objective_path_: np.ndarray
    objective_: float
    n_iter_: int
    n_jobs: int | None
    _whole: Any

    # --- labels -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row: the label of its leaf, which has the lowest cost on its training cases."""
        leaf = self.apply(X)
        return self.classes_[self.label_[leaf]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the share of each class among the training cases of a row's leaf, float64 (n, K)."""
        leaf = self.apply(X)
        counts = self.class_counts_[leaf]
        return counts / counts.sum(axis=1, keepdims=True)

    # --- text ---------------------------------------------------------------------------------------------------

    def rules(self, *, exact: bool = False) -> Any:
        """Return one row per leaf, from left to right: its conditions in words and its training cases.

        Parameters
        ----------
        exact : bool, default False
            Write the conditions in full, as in `to_text`.

        Returns
        -------
        frame as in fit, with the columns
            leaf, rule, class, n (cases), of_class (cases of the leaf's class), share (of the training cases) with
            the ends of its interval, coverage (their share of all cases of the class).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from toprank import TAOClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> table = TAOClassifier(max_depth=2, split="axis").fit(X, y).rules()
        >>> table[["rule", "class", "n"]].values.tolist()[0]
        ['petal width (cm) <= 0.8', 0, 50.0]
        """
        check_is_fitted(self)
        return make_frame(rule_table(self.rule_list(), exact=exact), self._backend)

    def rule_list(self) -> list[ClassRule]:
        """Return the rules as data, from left to right: conditions as objects, and the figures of each leaf.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from toprank import TAOClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> rule = TAOClassifier(max_depth=2, split="axis").fit(X, y).rule_list()[0]
        >>> condition = rule.ways[0].conditions[0]
        >>> rule.label, condition.column.name, condition.high
        (0, 'petal width (cm)', 0.8)
        """
        check_is_fitted(self)
        leaves = np.flatnonzero(self.tree_.is_leaf)
        label, n = self.label_[leaves], self.class_counts_[leaves].sum(axis=1)
        own = self.class_counts_[leaves, label]
        low, high = proportion_interval(own, n)
        labels = self.classes_[label].tolist()
        figures = dict(zip(FIGURES, (n, own, own / n, low, high, own / self.class_counts_[0, label]), strict=True))
        return [
            ClassRule(
                leaf=leaf + 1,
                ways=(self._way(leaf),),
                label=labels[leaf],
                **{name: float(values[leaf]) for name, values in figures.items()},
            )
            for leaf in range(len(leaves))
        ]

    def _way(self, leaf: int) -> Way:
        """Conditions on the way to a leaf, in the order of the path."""
        conditions = path_conditions(self.tree_, self.columns_, next(ways_up(self.tree_, leaf)))
        return Way(tuple(condition for condition in conditions if not condition.is_open))

    def summary(self) -> str:
        """Return a few lines about the fitted model: size, training figures, classes."""
        check_is_fitted(self)
        told = self._figures()
        n, wrong = told["n_cases"], told["n_wrong"]
        names = [SHORT.label(label) for label in self.classes_.tolist()]
        counts = [f"class {name}: {number_text(c)}" for name, c in zip(names, told["class_counts"], strict=True)]
        sizes = [plural(self.n_leaves_, "leaf", "leaves"), plural(self.n_conditions_, "condition")]
        return "\n".join([
            f"{type(self).__name__}: {', '.join(sizes)}, depth {told['depth']}",
            f"trained on {plural(n, 'case')}, {plural(len(self.columns_), 'column')} "
            f"({sum(c.is_categorical for c in self.columns_)} categorical)",
            f"{', '.join(counts)}; {number_text(wrong)} misclassified ({percent_text(wrong / n)})"
        ])  # fmt: skip

    def to_text(self, *, exact: bool = False) -> str:
        """Return the whole tree as text, each leaf with its class and its training cases of every class.

        Parameters
        ----------
        exact : bool, default False
            False gives a text to read, in 100 columns: numbers are rounded, long lists and sums cut; its last line says
            so. True gives the full tree, one line per node: answering its questions for a row leads to the leaf of
            `apply`, and so to the class of `predict`. A category that was not in training counts as missing.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from toprank import TAOClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> print(TAOClassifier(max_depth=2, split="axis").fit(X, y).to_text())
        TAOClassifier: 3 leaves, 2 conditions, depth 2
        trained on 150 cases, 4 columns (0 categorical)
        class 0: 50, class 1: 50, class 2: 50; 6 misclassified (4 %)
        <BLANKLINE>
        petal width (cm) <= 0.8?
        |   yes: leaf 1: class 0, 50 of 50 cases (100 %)
        |   no:  petal width (cm) <= 1.7?
        |   |   yes: leaf 2: class 1, 49 of 54 cases (90.7 %); class 2: 5
        |   |   no:  leaf 3: class 2, 45 of 46 cases (97.8 %); class 1: 1
        <BLANKLINE>
        Shortened: missing values; use to_text(exact=True) for the full text.
        """
        tree, detail = self.tree_, EXACT if exact else SHORT
        lines = [part for line in self.summary().splitlines() for part in textwrap.wrap(line, WIDTH)]
        number = np.cumsum(tree.is_leaf)

        def text_of(visit: Visit) -> str:
            if visit.is_open:
                return question(tree, self.columns_, visit.node, detail)
            return self._leaf_text(visit.node, number[visit.node], detail)

        lines += ["", *block_lines(TreeWalk(tree), 0, text_of, detail)]
        return "\n".join(lines if exact else [*lines, *shortened_lines(self._shortenings())])

    def _leaf_text(self, node: int, number: int, detail: Detail) -> str:
        """Return a leaf in words: leaf 2: class red, 47 of 52 cases (90.4 %); class blue: 5."""
        counts, own = self.class_counts_[node], int(self.label_[node])
        names = [detail.label(label) for label in self.classes_.tolist()]
        n, total = number_text(counts[own]), number_text(counts.sum())
        words = f"leaf {number}: class {names[own]}, {n} of {total} cases ({percent_text(counts[own] / counts.sum())})"
        others = self._other_classes(node)
        told = others[: detail.names]
        listed = [f"class {names[i]}: {number_text(counts[i])}" for i in told]
        if len(others) > len(told):
            listed.append(f"{len(others) - len(told)} more classes: {number_text(counts[others[len(told) :]].sum())}")
        return f"{words}; {', '.join(listed)}" if listed else words

    def _other_classes(self, node: int) -> list[int]:
        """Return the other classes that a leaf had cases of, most common first."""
        counts, own = self.class_counts_[node], int(self.label_[node])
        return [i for i in np.argsort(-counts, kind="stable").tolist() if i != own and counts[i] > 0]

    def _shortenings(self) -> list[str]:
        """Return what a short text leaves out, in words."""
        leaves, names = np.flatnonzero(self.tree_.is_leaf).tolist(), self.classes_.tolist()
        cut = any(is_cut([names[i] for i in self._other_classes(node)]) for node in leaves)
        cut |= any(is_cut([names[i]]) for i in self.label_[leaves].tolist())
        asked = np.flatnonzero(~self.tree_.is_leaf).tolist()
        return [*shortenings(self.tree_, self.columns_, asked), *(["classes"] if cut else [])]

    # --- files and plain values ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model as plain values, for a JSON file; `from_dict` restores it.

        A fitted `init` and a `random_state` that is not a number become None.
        """
        check_is_fitted(self)
        learned = {name: getattr(self, f"{name}_").tolist() for name in ARRAYS}
        return facts_of(self) | {"tree": self.tree_.to_dict(), "n_iter": self.n_iter_} | learned

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the model of a dictionary made by `to_dict`, checked.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from toprank import TAOClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TAOClassifier(max_depth=2).fit(X, y)
        >>> bool((TAOClassifier.from_dict(model.to_dict()).predict(X) == model.predict(X)).all())
        True
        """
        try:
            model: Self = model_of(cls, data)
            misfit = model._learn(Tree.from_dict(data["tree"]), data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"Not a valid {cls.__name__}: {error!r}. Hint: use a dictionary made by `to_dict`."
            ) from error
        if misfit:
            raise InputError(
                f"Not a valid {cls.__name__}: its {misfit} do not fit. Hint: use a dictionary made by `to_dict`."
            )
        return model

    def _figures(self) -> dict[str, Any]:
        """Return figures of the fitted model for its file."""
        counts = self.class_counts_[0]
        leaves = np.flatnonzero(self.tree_.is_leaf)
        of_others = np.arange(len(counts)) != self.label_[leaves, None]
        return {
            "n_cases": float(counts.sum()),
            "class_counts": counts.tolist(),
            "n_wrong": float(self.class_counts_[leaves][of_others].sum()),
            "n_leaves": self.n_leaves_,
            "n_conditions": self.n_conditions_,
            "depth": self.tree_.depth,
            "objective": float(self.objective_),
        }

    def _to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the fitted model for a file."""
        check_depth(self.tree_)
        learned = {name: getattr(self, f"{name}_") for name in ARRAYS} | {"n_iter": np.array(self.n_iter_)}
        return with_prefix(self.tree_.to_arrays(), "tree_") | learned

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the fitted model from the arrays of a file."""
        misfit = self._learn(Tree.from_arrays(without_prefix(arrays, "tree_")), arrays)
        if misfit:
            raise InputError(f"The model's {misfit} do not fit together.")

    def _learn(self, tree: Tree, learned: Mapping[str, Any]) -> str:
        """Set the tree and the other fitted arrays; return which of them do not fit together, in words, or nothing."""
        self.tree_, self.n_iter_ = tree, int(learned["n_iter"])
        self._whole = None  # only the final tree is kept
        for name, dtype in ARRAYS.items():
            setattr(self, f"{name}_", np.array(learned[name], dtype))
        n, k = len(tree), len(self.classes_)
        label = self.label_[tree.is_leaf] if self.label_.shape == (n,) else np.array([-1])
        counts, path = self.class_counts_, self.objective_path_
        for holds, what in (
            (_reads(tree, self.columns_), "tree and columns"),
            (len(tree) == 2 * tree.n_leaves - 1 and np.all(np.diff(tree.leaf[tree.is_leaf]) == 1), "tree and leaves"),
            (np.all((label >= 0) & (label < k)), "labels and classes"),
            (
                counts.shape == (n, k)
                and are_amounts(counts)
                and 0 < counts.sum() <= 2**53
                and np.all(counts.sum(axis=1) > 0),
                "counts and classes",
            ),
            (self.costs_.shape == (k, k) and are_amounts(self.costs_), "costs and classes"),
            (path.ndim == 1 and len(path) > 0 and are_amounts(path), "objectives"),
        ):
            if not holds:
                return what
        self.objective_ = float(path[-1])
        return ""


def _reads(tree: Tree, columns: Sequence[Column]) -> bool:
    """Return True if a tree can read columns like these."""
    try:
        check_columns(tree, columns)
    except ValueError:
        return False
    return True


def are_amounts(values: np.ndarray) -> bool:
    """Return True if all values are finite and none is negative."""
    return bool(np.all(np.isfinite(values) & (values >= 0)))
