"""Simulations with known truth, of one room of the package per file."""
