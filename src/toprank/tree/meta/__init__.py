"""Meta-trees: growing, ordering, pruning, stages."""
