"""Tree core: columns to bins, growing, the meta-tree engine, the frozen `Tree`.

Uses numpy and `toprank._core` only, neither scikit-learn nor data frames nor files.
"""
