"""A ranker of a new kind in a few lines: what "How to add a ranker" in docs/design.md promises."""

from typing import Any

import numpy as np
import pytest

from cli_files import run
from ranker_cases import make_cases
from toprank import load
from toprank.explain.reasons import Reason
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.register import BY_COMMAND, BY_NAME, Entry


class NearestCentre(Ranker):
    """Rows near the centre of the positives rank high: no bins, no trees."""

    _parameter_constraints: dict[str, list[Any]] = {**RANKER_CONSTRAINTS, "cv": ["cv_object"]}

    def __init__(self, *, budget=None, pos_label=None, cv=3, categorical_features=None, keep_columns=None, n_jobs=None):
        self.budget, self.pos_label, self.cv, self.n_jobs = budget, pos_label, cv, n_jobs
        self.categorical_features, self.keep_columns = categorical_features, keep_columns

    def _fit_model(self, data, threads):
        weight = np.ones(len(data.X)) if data.weight is None else data.weight
        self.fill_ = np.nanmean(data.X, axis=0)
        X = np.where(np.isnan(data.X), self.fill_, data.X)
        self.centre_ = np.average(X[data.is_positive], axis=0, weights=weight[data.is_positive])
        self.scale_ = X.std(axis=0) + 1e-9

    def _distances(self, matrix):
        return np.abs(np.where(np.isnan(matrix), self.fill_, matrix) - self.centre_) / self.scale_

    def _score_rows(self, matrix, threads):
        return -self._distances(matrix).mean(axis=1)

    def _reasons(self, matrix, n_reasons, originals, gain):
        nearest = np.argsort(self._distances(matrix), axis=1)[:, :n_reasons]
        names = [column.name for column in self.columns_]
        return [[Reason(names[f], row[f], 1.5, f"{names[f]} is near that of known positives") for f in own]
                for own, row in zip(nearest, matrix, strict=True)]  # fmt: skip

    def _size_in_words(self):
        return f"centre of {len(self.centre_)} columns"

    def _to_arrays(self):
        return super()._to_arrays() | {"fill": self.fill_, "centre": self.centre_, "scale": self.scale_}

    def _from_arrays(self, arrays):
        super()._from_arrays(arrays)
        self.fill_, self.centre_, self.scale_ = arrays["fill"], arrays["centre"], arrays["scale"]


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(BY_NAME, "NearestCentre", Entry("NearestCentre", __name__, "other"))


def test_a_new_ranker_has_all_that_rankers_have(registered, tmp_path):
    X, y = make_cases(600)
    model = NearestCentre(budget=0.1).fit(X, y)
    assert model.rates_.is_for_new_cases, "hit rates of new cases come from the base"
    alerts = model.top_k(X, reasons=2)
    assert len(alerts) == model.predict(X).sum() == 60
    assert {"hit_rate", "lift", "reason_2", "strength_2"} <= set(alerts.columns)
    assert np.all(np.diff(model.predict_proba(X)[alerts["row"], 1]) <= 0)
    assert "centre of" in model.summary()
    assert "10 %" in model.summary() or "60 cases" in model.summary()
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.top_k(X).equals(model.top_k(X))


def test_the_command_line_takes_a_model_without_trees(registered, tmp_path, monkeypatch):
    X, y = make_cases(600)
    X.assign(label=y).to_csv(tmp_path / "cases.csv", index=False)
    entry = Entry("NearestCentre", __name__, "other", "nearest-centre")
    monkeypatch.setitem(BY_COMMAND, "nearest-centre", entry)
    model, table = tmp_path / "model.toprank", tmp_path / "cases.csv"
    for command, words in (
        (("fit", table, "--label", "label", "--model", "nearest-centre", "-o", model), "NearestCentre"),
        (("describe", model), "NearestCentre"),
        (("describe", model, "--all"), "trained on"),
        (("topk", model, table, "--k", 3), "near that of known positives"),
        (("evaluate", model, table, "--label", "label"), "AP"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
        assert words in done.out
    refused = run("describe", model, "--exact")
    assert (refused.code, refused.out) == (2, "")
    assert "NearestCentre" in refused.err


def test_a_new_ranker_refuses_bad_input_as_all_do():
    X, y = make_cases(100)
    with pytest.raises(ValueError, match="budget"):
        NearestCentre(budget=0).fit(X, y)
    with pytest.raises(ValueError, match="both classes"):
        NearestCentre().fit(X, np.zeros(100))
    model = NearestCentre().fit(X, y)
    with pytest.raises(ValueError, match="size"):
        model.decision_function(X.drop(columns="size"))
