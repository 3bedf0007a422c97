"""The explainable boosting machine of interpret: an additive model with one curve per column and some pairs."""

from __future__ import annotations

from typing import Any

from toprank.experiment.registry import Method, register


def make_ebm(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
    """Explainable boosting machine: 8 outer bags instead of 14, for time."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(**{"random_state": random_state, "n_jobs": n_jobs, "outer_bags": 8} | setting)


def curves(model: Any) -> tuple[int, str]:
    """Curves, and surfaces of pairs, of a fitted machine."""
    return len(model.term_names_), "curves"


register(
    Method("ebm", "EBM", "additive", make_ebm, {"interactions": (0, 10)}, "numbers", ("interpret",), is_readable=True,
           size=curves, summary="Explainable boosting machine: one curve per column, and up to 10 pairs.")
)  # fmt: skip
