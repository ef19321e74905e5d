"""Naive reference implementations: loops over items and pairs, nothing else."""
