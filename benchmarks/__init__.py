"""Measurements that the documentation reports, and simulations with known truth."""
