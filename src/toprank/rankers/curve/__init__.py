"""Cost-optimal curves: a tree for every balance of mistakes."""
