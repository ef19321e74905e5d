"""Numbers of everything public, frozen, so that a change of the inside shows."""
