"""scikit-learn's own checks of estimators, as parameters of a test."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

OF_EVERY_CLASS = {
    "check_parameters_default_constructible", "check_no_attributes_set_in_init", "check_get_params_invariance",
    "check_do_not_raise_errors_in_init_or_set_params", "check_set_params", "check_estimator_cloneable",
    "check_dont_overwrite_parameters", "check_estimators_overwrite_params", "check_dict_unchanged",
    "check_fit_idempotent", "check_estimators_pickle", "check_estimators_unfitted", "check_fit2d_1sample",
    "check_fit2d_1feature", "check_methods_subset_invariance", "check_methods_sample_order_invariance",
    "check_sample_weights_not_overwritten", "check_sample_weight_equivalence_on_dense_data",
    "check_readonly_memmap_input", "check_classifiers_one_label_sample_weights", "check_decision_proba_consistency",
}  # fmt: skip
"""Checks of what a class adds to its family: parameters, and its own part of `fit` and of its scores."""

RENAMED = {"check_do_not_raise_errors_in_init_or_set_param": "check_do_not_raise_errors_in_init_or_set_params"}
"""Checks by their names in older versions of scikit-learn."""


def sklearn_checks(estimators, expected_failures, only=None, still_fail=()):
    """Yield (estimator, check) for every check; those whose names are not in `only` are slow tests.

    `expected_failures(estimator)` returns reasons by name of check. Such a check is run on estimators of the classes
    `still_fail` alone, to see that it still fails.
    """
    unseen = set(only or ())
    for estimator in estimators:
        reasons = expected_failures(estimator)
        for _, check in estimator_checks_generator(estimator):
            name = RENAMED.get(check.func.__name__, check.func.__name__)
            unseen.discard(name)
            if name in reasons and not isinstance(estimator, still_fail):
                continue
            marks = [pytest.mark.xfail(reason=reasons[name], strict=True)] if name in reasons else []
            if only is not None and name not in only:
                marks.append(pytest.mark.slow)
            yield pytest.param(estimator, check, marks=marks, id=f"{type(estimator).__name__}-{name}")
    assert not unseen, f"scikit-learn has no such checks: {sorted(unseen)}"
