"""Tree alternating optimisation."""
