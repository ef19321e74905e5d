"""Kernels over pairs of items; no pair is ever written down."""
