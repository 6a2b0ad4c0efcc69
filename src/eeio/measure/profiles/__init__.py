"""PTS test profiles and suites, read from the same files that PTS reads."""
