"""`MetaParts`: what a ranker with a meta-tree tells about its parts: nodes, sub-trees, the rule at one node."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank.budget import Cutoff, cases_of_budget, find_cutoff
from toprank.data.frames import make_frame
from toprank.errors import InputError
from toprank.explain import Covers, PathCounts
from toprank.rankers.meta.meta_ranker import MetaRanker
from toprank.rankers.meta.nodes import MetaNodes, NodeClassifier
from toprank.tree.structure import Tree


class MetaParts(MetaRanker):
    """Base of the rankers that keep their meta-tree after fitting; it is None where a model comes from a file."""

    _meta_nodes: MetaNodes | None
    full_tree_: Tree

    @property
    def nodes_(self) -> Any:
        """Meta-nodes, parents first: node, parent, depth, is_leaf, n, positives, alpha, beta, auc_gain; a frame."""
        columns = {name: values.tolist() for name, values in self._nodes("nodes_").table().items()}
        return make_frame(columns, self._backend)

    def subtree(self, nodes: Any) -> Self:
        """A copy of the model whose ranking ends in the given meta-nodes; what stands below them is merged.

        Parameters
        ----------
        nodes : list of int
            Meta-nodes, as `nodes_` numbers them. The cells of the copy are ordered as `leaf_order` says; where that
            needs rows that were set aside, or where cells were merged, they stay where they are. `predict` of the copy
            lets whole cells through, as the training rows are gone.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=3).fit(data.X, data.y)
        >>> model.n_leaves_, model.subtree([1, 2]).n_leaves_
        (7, 2)
        """
        own = self._nodes("subtree")
        part = copy(self)
        part._meta_nodes = own.ending_in(own.check(nodes, f"{type(self).__name__}.subtree"))
        part._stages = None
        part.tree_ = part.full_tree_ = part._meta_nodes.finished()
        part.path_counts_, part._covers = PathCounts.none(part.tree_), Covers.none()
        part.cutoff_ = self._cutoff_of_cells(part.tree_)
        return part

    def _cutoff_of_cells(self, tree: Any) -> Cutoff:
        """The budget's cutoff where the training rows are gone: between cells, as inside them nothing is known."""
        cells = np.flatnonzero(tree.is_leaf)
        score = tree.score[cells]
        if tree.scoring.kind != "constant":
            score = np.nextafter(score - 1.0 / tree.n_leaves, 1.0)  # the lower end of a cell's range
        k = cases_of_budget(self.budget, self.n_cases_, self.n_positives_)
        weight = np.concatenate((tree.positive[cells], tree.negative[cells]))
        is_positive = np.repeat([True, False], len(cells))
        present = weight > 0
        return find_cutoff(k, self.n_cases_, np.tile(score, 2)[present], is_positive[present], weight[present])

    def node_classifier(self, node: int) -> NodeClassifier:
        """What parts one meta-node: a classifier with `predict` (True = the better half) and `to_text`.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=2, leaf_ranker="stump").fit(data.X, data.y)
        >>> root = model.node_classifier(0)
        >>> bool(root.beta > root.alpha), root.predict(data.X).shape
        (True, (4000,))
        """
        own = self._nodes("node_classifier")
        chosen = int(own.check([node], f"{type(self).__name__}.node_classifier")[0])
        if own.meta.is_leaf[chosen]:
            raise InputError(
                f"{type(self).__name__}.node_classifier needs a meta-node that is parted, but {chosen} is a cell of "
                "the ranking. Hint: `nodes_` tells them apart in its column is_leaf."
            )
        meta, left = own.meta, own.meta.left[chosen]
        negative = meta.total - meta.positive
        alpha, beta = negative[left] / negative[chosen], meta.positive[left] / meta.positive[chosen]
        return NodeClassifier(chosen, own.rule_at(chosen), float(alpha), float(beta), self.columns_, self._encode)

    def _nodes(self, caller: str) -> MetaNodes:
        check_is_fitted(self)
        if self._meta_nodes is None:
            raise InputError(
                f"{type(self).__name__}.{caller} needs the meta-tree, but this model comes from a file, and files hold "
                "the finished tree. Hint: fit it again, or pickle a fitted model."
            )
        return self._meta_nodes
