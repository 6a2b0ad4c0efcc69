"""Differences between experiments and between campaigns, and the gate for CI.

A cell is one experiment on one machine and device with the values of its repetitions (`cells`). Two
cells that differ in only one factor make a pair (`pairing`); a difference is reported only when a
test confirms it (`differences`, `effects`; docs/explanation/statistics.md). `cells` needs no
scientific library, the others do. May import `eeio.analysis` and what that may import.
"""
