"""The register of estimators is complete, and what reads it agrees with it."""

import inspect
import re

import pytest

import toprank
from toprank.rankers.base import Ranker
from toprank.rankers.reading import TableReader
from toprank.register import BY_COMMAND, ENTRIES, entry_of


def test_every_public_estimator_is_registered_once():
    public = {name for name in toprank.__all__ if inspect.isclass(getattr(toprank, name))}
    estimators = {name for name in public if issubclass(getattr(toprank, name), TableReader)}
    assert estimators == {entry.name for entry in ENTRIES}
    assert len(ENTRIES) == len({entry.name for entry in ENTRIES})
    assert len(BY_COMMAND) == len([entry for entry in ENTRIES if entry.command])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_tells_what_the_class_is(entry):
    estimator = entry.load()
    assert estimator is getattr(toprank, entry.name)
    assert issubclass(estimator, Ranker) == entry.ranks
    assert entry.labels == (entry.ranks and estimator.predict is not Ranker.predict)
    assert entry_of(estimator()) is entry is entry_of(entry.name)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_model_has_to_dict_only_with_its_inverse(entry):
    estimator = entry.load()
    assert hasattr(estimator, "to_dict") == hasattr(estimator, "from_dict")
    assert hasattr(estimator, "to_plain") == entry.ranks


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_parameters_are_documented_in_the_order_of_the_signature(entry):
    estimator = entry.load()
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n", inspect.getdoc(estimator), re.DOTALL | re.MULTILINE)[1]
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section, re.MULTILINE)
    assert [name for head in heads for name in head.split(", ")] == list(inspect.signature(estimator).parameters)


LEAF_SCORES = {"constant", "margin", "linear", "additive", "votes"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_parameters_have_the_same_names_everywhere(entry):
    estimator = entry.load()
    names = inspect.signature(estimator).parameters
    assert {"random_state", "n_jobs"} <= names.keys()
    if "leaf_score" in names:
        (options,) = estimator._parameter_constraints["leaf_score"]
        assert options.options <= LEAF_SCORES
        assert names["leaf_score"].default in options.options
