"""A campaign: all runs of a suite, planned, run in one random order, stored as they end."""
