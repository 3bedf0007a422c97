"""What holds for displays of every kind: their frames and how they name themselves."""

import pandas
import pytest

from plot_cases import MAKERS, names, precision_at_k
from toprank.plots import ImbalanceDisplay


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_of_the_kind_asked_for(make, backend):
    frame = make(3, missing=True).frame(backend)
    assert type(frame).__module__.partition(".")[0] == backend
    assert set(frame["method"].to_pylist() if backend == "pyarrow" else frame["method"]) == set(names(3))


@pytest.mark.parametrize("make", MAKERS)
def test_without_a_kind_it_is_the_first_library_that_is_installed(make):
    assert isinstance(make(2).frame(), pandas.DataFrame)


def test_a_display_says_what_it_holds():
    assert repr(ImbalanceDisplay([10], {"a": [1]})) == "<ImbalanceDisplay of 1 method: a>"
    assert repr(precision_at_k(6)).endswith("of 6 methods: MetaAP, Gini, Entropy, TreeRank, ...>")
