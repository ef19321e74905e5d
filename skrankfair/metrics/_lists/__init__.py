"""Kernels over ranked lists: orders, shares at the top, permutations."""
