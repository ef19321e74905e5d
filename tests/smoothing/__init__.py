"""Tests of the smoother."""
