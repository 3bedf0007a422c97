"""What `toprank.distributed.SGBAP` says without a Dask collection, a client, Dask or XGBoost."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from toprank.distributed import SGBAP
from toprank.distributed.training import Workers
from toprank.errors import InputError, InputTypeError

da = pytest.importorskip("dask.array")


@pytest.mark.parametrize("X", [np.zeros((4, 2)), pd.DataFrame({"a": [1, 2]}), [[1.0]]], ids=["numpy", "pandas", "list"])
def test_tables_in_memory_are_refused(X):
    with pytest.raises(InputTypeError, match=r"toprank\.SGBAP"):
        SGBAP().fit(X, [0, 1])


def test_no_client():
    with pytest.raises(InputError, match="no Dask client"):
        SGBAP().fit(da.zeros((4, 2)), [0, 1, 0, 1])
    with pytest.raises(InputTypeError, match="client is a str"):
        SGBAP().fit(da.zeros((4, 2)), [0, 1, 0, 1], client="localhost")


def test_sums_over_workers_do_not_overflow(monkeypatch):
    collective = pytest.importorskip("xgboost.collective")
    monkeypatch.setattr(collective, "allreduce", lambda values, op: (3 * values).ravel())  # three workers alike
    large = np.array([2**62 + 2**40 + 12_345, 7, -5])
    assert Workers(np.arange(2)).total(large).tolist() == [float(3 * int(each)) for each in large]
    assert Workers(np.arange(2)).total(np.array([[0.5], [1.5]])).tolist() == [[1.5], [4.5]]


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["dask", "xgboost"])
def test_the_message_without_dask_or_xgboost_names_the_extra(hidden):
    code = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from toprank.distributed import SGBAP\n"
        "try:\n    SGBAP().fit(None, None)\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "toprank[dask,boosting]" in done.stdout if hidden == "dask" else "toprank[boosting]" in done.stdout
