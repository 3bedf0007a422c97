"""Objects of the tree core: columns to bins, growing, the meta-tree engine, the frozen `Tree`.

numpy and `toprank._core` only; scikit-learn, data frames and files are somebody else's business.
"""
