"""Sums over pairs of items, computed from sorted rows without a list of the pairs."""
