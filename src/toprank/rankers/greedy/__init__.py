"""One greedy tree as a ranker."""
