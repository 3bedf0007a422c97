"""A new score inside leaves in a few lines: what "How to add a score inside leaves" in docs/design.md promises."""

from dataclasses import dataclass, replace

import numpy as np

from ranker_cases import make_cases
from toprank import MetaAP, load
from toprank.tree.scoring import Scoring


@dataclass(frozen=True, eq=False)
class ByColumn(Scoring):
    """Rows of a leaf by the value of one column."""

    kind = "by-column"
    column: float = 0.0

    def finish(self, tree, block, leaf, out):
        out[:] = tree.scores_with_points(leaf, block[:, int(self.column)])

    def _invariants(self, n_features):
        yield 0 <= self.column < n_features, "about a column of the tree"


def test_a_new_scoring_scores_is_saved_and_loaded(tmp_path):
    X, y = make_cases(400)
    model = MetaAP(leaf_score="constant", ccp_alpha=0.0, cv=0).fit(X, y)
    before = model.decision_function(X)
    model.tree_ = replace(model.tree_, scoring=ByColumn(0)).check()
    score = model.decision_function(X)
    leaf = model.tree_.leaf[model.apply(X)]
    for place in np.unique(leaf):
        inside = leaf == place
        known = inside & X["size"].notna().to_numpy()
        order = np.argsort(X["size"][known].to_numpy(), kind="stable")
        assert np.all(np.diff(score[known][order]) >= 0)
        assert score[inside].max() <= before[inside].max()
    model.save(tmp_path / "model.toprank")
    assert np.array_equal(load(tmp_path / "model.toprank").decision_function(X), score)
