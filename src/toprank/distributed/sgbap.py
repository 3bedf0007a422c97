"""`SGBAP` for Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import FINGERPRINT_ROWS, Cases, sample_cases
from toprank.data.column_roles import learn_columns
from toprank.data.encoding import encode
from toprank.data.table import Table
from toprank.distributed.partitions import (
    PartitionedCases,
    PartitionedTable,
    Partitions,
    blocks_of,
    computed,
    current_client,
    encode_part,
    import_dask,
    is_dask,
    sending_much,
    size_of,
)
from toprank.distributed.training import Fit, reference_rows
from toprank.errors import InputError, InputTypeError, warn_caller
from toprank.metrics import average_precision
from toprank.rankers.additive_ranker import COVER_ROWS
from toprank.rankers.boosting.boosted_ranker import TREES_SO_FAR
from toprank.rankers.boosting.booster import feature_types
from toprank.rankers.boosting.rounds import import_xgboost
from toprank.rankers.boosting.sgbap import SGBAP as LocalSGBAP
from toprank.rankers.progress import progress
from toprank.rankers.unseen import FOLD_ROWS, has_folds
from toprank.rankers.validation import positives_of
from toprank.tree.bin_mapper import sample_rows
from toprank.tree.columns import USUAL_ROWS, with_usual


class SGBAP(LocalSGBAP):
    """`toprank.SGBAP`, fitted where the rows of a Dask collection are.

    The trees are those that one machine would grow, whatever the partitions. Parameters, attributes and model files are
    those of `toprank.SGBAP`: `toprank.load` reads a saved model as one. The number of rounds and the hit rates come
    from folds of at most 100,000 cases, as on one machine; these are sent to the client and boosted there, with
    `n_jobs` threads. Workers use their own threads. Boosting starts from scratch: `init` is None or "auto", which
    stands for None here.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from dask.distributed import Client
    >>> from toprank.datasets import make_audit
    >>> from toprank.distributed import SGBAP
    >>> data = make_audit(600, random_state=0)
    >>> X = dd.from_pandas(data.X, npartitions=3)
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     model = SGBAP(n_estimators=5, cv=0).fit(X, data.y)
    ...     score = model.decision_function(X).compute()
    >>> model.n_rounds_, score.shape
    (5, (600,))
    """

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Self:
        """Fit to past cases in a Dask collection.

        Parameters
        ----------
        X : dask array or data frame of shape (n, n_features)
        y : array of shape (n,), of Dask or not
            The outcome: two values; `pos_label` is positive, or 1, True, yes and the like, or the larger one.
        sample_weight : array of shape (n,), of Dask or not, optional
            Non-negative weights; weight 0 leaves the row out.
        client : dask.distributed.Client, optional
            The cluster; None = the current client.

        Raises RuntimeError if a worker leaves the cluster while trees are grown.
        """
        import_dask()
        import_xgboost()
        if self.init is not None and self.init != "auto":
            raise InputTypeError(
                f"init is a {type(self.init).__name__}, expected None or 'auto': on a cluster boosting starts from "
                "scratch. Hint: toprank.SGBAP takes init, on one machine."
            )
        with self._fitting():
            blocks = blocks_of(X)
            raw, (y, sample_weight) = computed(current_client(client), blocks, y, sample_weight)
            data = self._read_cases(raw, y, sample_weight)
            del raw  # workers keep the encoded rows alone
            self._bring_sample(data)
            self.columns_ = with_usual(data.columns, data.X, data.is_positive, data.weight)
            self.data_hash_ = data.fingerprint()
            with Threads(resolve_n_jobs(self.n_jobs)) as threads:
                self._set_cutoff(data, threads, self._fit_model(data, threads))
        return self

    def _read_cases(self, raw: Partitions, y: Any, sample_weight: Any) -> PartitionedCases:
        """Learn the roles of columns, and encode each partition where it is."""
        sizes = np.array(raw.of(size_of), np.int64)
        if sizes.sum() == 0:
            raise InputError(f"SGBAP.fit needs rows, but all {len(sizes):,} partitions of X are empty (0 samples). "
                             "Hint: did a filter drop them all?")  # fmt: skip
        table, head = PartitionedTable.from_parts(raw, sizes.tolist())
        self._read(head, reset=True)
        is_positive, weight = self._read_labels(y, sample_weight, len(table))
        self._check_cases(weight)
        self.columns_, self.left_out_ = learn_columns(table, self.categorical_features, self.keep_columns)
        # Cells that cannot be read are counted here, over all partitions; workers stay silent.
        encode(table, [column for column in self.columns_ if column.form and column.form != "date"])
        ends = np.cumsum(sizes)[:-1]
        weights = [None] * len(sizes) if weight is None else np.split(weight, ends)
        reader = self._unfitted_copy()
        with sending_much():
            parts = raw.map(encode_part, np.split(is_positive, ends), weights, reader=reader)
        has_missing = np.any(parts.of(lambda part: np.isnan(part.X).any(axis=0)), axis=0)
        columns = [replace(c, has_missing=bool(m)) for c, m in zip(self.columns_, has_missing, strict=True)]
        return PartitionedCases(parts, sizes, is_positive, weight, columns)

    def _bring_sample(self, data: PartitionedCases) -> None:
        """Send the rows here that folds, explanations and usual values are computed on."""
        n = len(data.is_positive)
        wanted = [np.linspace(0, n - 1, min(n, FINGERPRINT_ROWS)).astype(np.int64), data.sample(COVER_ROWS)]
        usual = sample_rows(n, USUAL_ROWS, data.weight)
        wanted.append(np.arange(n) if usual is None else usual)
        if has_folds(self.cv):
            is_number = self.cv is None or isinstance(self.cv, int | np.integer)
            if not is_number and n > FOLD_ROWS:
                raise InputError(
                    f"cv is a {type(self.cv).__name__} and X has {n:,} rows, expected a number of folds with more than "
                    f"{FOLD_ROWS:,} rows. Hint: a number draws {FOLD_ROWS:,} cases for the folds."
                )
            wanted.append(sample_cases(data.is_positive, data.weight, FOLD_ROWS)[0] if is_number else np.arange(n))
        data.bring(np.unique(np.concatenate(wanted)))

    def _grow(self, data: Cases, n_rounds: int, threads: Threads) -> None:
        if not isinstance(data, PartitionedCases):
            super()._grow(data, n_rounds, threads)
            return
        types = feature_types(data)
        reference = reference_rows(data, types, self.max_bin)
        fit, line = Fit(data), ProgressLine(n_rounds, self.verbose > 0)
        try:
            found = fit.run(self._settings(), n_rounds, types, reference, line.show)
        except KeyboardInterrupt as interrupt:
            found = interrupt.args[0] if interrupt.args else None
            if self.on_interrupt != "keep" or found is None:
                raise
            warn_caller(TREES_SO_FAR)
        finally:
            line.close()
        assert found is not None
        self._finish(lambda: self._take_json(found))

    def _score_training_rows(self, data: Any, threads: Threads) -> tuple[slice | np.ndarray, np.ndarray]:
        trees = data.parts.client.scatter(self.trees_, hash=False)
        score = np.concatenate(data.parts.of(lambda part, trees: trees.decision_function(part.X), trees=trees))
        rows = slice(None) if len(score) <= self._cutoff_rows else data.sample(self._cutoff_rows)
        return rows, score[rows]

    # --- scoring ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """Return the score of each row: a lazy dask array for a Dask collection, else as `toprank.SGBAP`."""
        return self._lazily("decision_function", X, (), np.float64)

    def predict_proba(self, X: Any) -> Any:
        """Return the rates to expect of new cases with each row's score, (n, 2): lazy for a Dask collection."""
        return self._lazily("predict_proba", X, (2,), np.float64)

    def predict(self, X: Any) -> Any:
        """Return the class of each row, positive above the cutoff of `budget`: lazy for a Dask collection."""
        return self._lazily("predict", X, (), self.classes_.dtype if hasattr(self, "classes_") else np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the average precision on (X, y); of Dask collections, scores and outcomes are sent to the client."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        from dask.base import compute

        score, y, sample_weight = compute(self.decision_function(X), y, sample_weight)
        is_positive = positives_of(self, y, len(score), "SGBAP.score")
        return average_precision(is_positive, score, sample_weight=sample_weight, pos_label=True)

    def _lazily(self, method: str, X: Any, width: tuple[int, ...], dtype: Any) -> Any:
        """A method of the local model for each partition."""
        if not is_dask(X):
            return getattr(super(), method)(X)
        from dask.array import concatenate, from_delayed
        from dask.delayed import delayed

        model, score = delayed(self.to_local(), pure=True), delayed(score_block, pure=True)
        blocks = blocks_of(X)
        sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
        arrays = [
            from_delayed(score(block, model, method, width, dtype), (size, *width), dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
        return concatenate(arrays, allow_unknown_chunksizes=True)

    def to_local(self) -> LocalSGBAP:
        """Return the same model as a `toprank.SGBAP`, which needs no Dask."""
        local = LocalSGBAP()
        for name, value in vars(self).items():
            setattr(local, name, value)
        return local

    def _read(self, X: Any, reset: bool) -> Table:
        if is_dask(X):
            raise InputTypeError(
                f"X is a dask {type(X).__name__}, expected a table in memory. Hint: decision_function, predict_proba "
                "and predict take Dask collections; for the rest pass X.compute(), or the rows with the best scores."
            )
        return super()._read(X, reset)


def score_block(block: Any, model: LocalSGBAP, method: str, width: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Result of a method of a model for the rows of a partition, which may have none."""
    return getattr(model, method)(block) if len(block) else np.empty((0, *width), dtype)


class ProgressLine:
    """A progress line that is told how many rounds are done."""

    def __init__(self, n_rounds: int, enabled: bool):
        self._steps = progress(range(n_rounds + 1), n_rounds, "trees", enabled)
        self._done = -1
        next(self._steps)

    def show(self, n_done: int) -> None:
        """Show a number of rounds."""
        while self._done < n_done - 1 and next(self._steps, None) is not None:
            self._done += 1

    def close(self) -> None:
        """End the line."""
        self._steps.close()  # type: ignore[attr-defined]
