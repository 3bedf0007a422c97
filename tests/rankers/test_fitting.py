"""The frame of all fits."""

from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from toprank import RankingTree


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_linear_algebra_keeps_to_one_thread_in_fits_and_gets_its_threads_back(monkeypatch, error):
    seen, fit_model = [], RankingTree._fit_model

    def watched(self, data, threads):
        seen.append(blas_threads())
        if error is not None:
            raise error
        return fit_model(self, data, threads)

    monkeypatch.setattr(RankingTree, "_fit_model", watched)
    X = np.arange(40.0)[:, None]
    with threadpool_limits(2, "blas"):
        with nullcontext() if error is None else pytest.raises(error):
            RankingTree(cv=0).fit(X, X[:, 0] > 30)
        assert blas_threads() == {2}
    assert seen == [{1}]
