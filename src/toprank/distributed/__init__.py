"""Rankers for Dask collections: rows stay on the workers, the fitted model is the one of a single machine."""

from toprank.distributed.sgbap import SGBAP

__all__ = ["SGBAP"]
