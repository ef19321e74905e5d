"""The tests of skrankfair."""
