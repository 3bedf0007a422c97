"""Rankers that are one meta-tree: MetaAP and TreeRank."""
