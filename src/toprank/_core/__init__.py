"""Kernels: Numba on plain arrays.

Owns every loop over rows. Knows nothing about scikit-learn, data frames or files: a kernel takes arrays and integers,
and writes into arrays the caller provides.
"""
