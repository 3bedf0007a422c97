"""Kernels: Numba on plain arrays.

Owns every loop over rows. Knows nothing of scikit-learn, data frames or files: a kernel takes arrays and
integers, and writes into arrays it is given.
"""
