"""Split criteria: the gain of splitting a node."""

import numpy as np

from toprank._core.dtypes import AP, AUC, ERROR, GINI
from toprank._core.jit import kernel


@kernel
def x_log2_share(part, whole):
    """Return part * log2(part / whole), or 0 if part is 0."""
    if part <= 0.0:
        return 0.0
    return part * np.log2(part / whole)


@kernel
def split_gain(criterion, positive_left, total_left, positive, total, whole_positive, whole_total):
    """Gain of a split over no split; larger is better, in units of weight.

    p is the share of the node's positives that goes left and q the share of its cases; N+ and N- are the classes of the
    whole tree, used only by "error":

    ap       n_l AP_left + n_r AP_right - n AP = n+ (2p - 1)(p - q)      (section 4 of the MetaAP paper)
    auc      |n_l+ n- - n_l- n+|: twice the area that the split adds under the ROC curve, times n+ n- of the root
    gini     decrease of the Gini impurity, times n
    entropy  information gain in bits, times n
    error    |(n_l+ N- - n_l- N+) - (n_r+ N- - n_r- N+)| / 2: the cost saved by labelling one side positive and
             the other negative, over labelling half of each class positive, if both classes of the whole tree cost the
             same. At the root it equals the gain of auc.

    Pre: 0 < positive < total, 0 < total_left < total.
    """
    positive_right = positive - positive_left
    total_right = total - total_left
    if criterion == AP:
        p = positive_left / positive
        return positive * (2.0 * p - 1.0) * (p - total_left / total)
    if criterion == AUC:
        return abs(positive_left * (total - positive) - (total_left - positive_left) * positive)
    if criterion == ERROR:
        whole_negative = whole_total - whole_positive
        left = positive_left * whole_negative - (total_left - positive_left) * whole_positive
        right = positive_right * whole_negative - (total_right - positive_right) * whole_positive
        return 0.5 * abs(left - right)
    if criterion == GINI:
        return 2.0 * (
            positive * (total - positive) / total
            - positive_left * (total_left - positive_left) / total_left
            - positive_right * (total_right - positive_right) / total_right
        )
    return (
        x_log2_share(positive_left, total_left)
        + x_log2_share(total_left - positive_left, total_left)
        + x_log2_share(positive_right, total_right)
        + x_log2_share(total_right - positive_right, total_right)
        - x_log2_share(positive, total)
        - x_log2_share(total - positive, total)
    )


@kernel
def richer_part(criterion, positive_left, total_left, positive, total):
    """Weight of the side richer in positives, with which TreeRank breaks ties between splits (remark 10); else 0."""
    if criterion != AUC and criterion != ERROR:
        return np.int64(0)
    is_left = float(positive_left) * float(total) > float(positive) * float(total_left)
    return total_left if is_left else total - total_left
