"""Rankers that compare a case with known cases: nearest positives against nearest negatives."""
