"""Differences between experiments: the effect of each factor, its size, and its certainty.

A cell is one experiment on one machine and device with the values of its repetitions (`cells`). Two
cells that differ in only one factor make a pair (`pairing`); a difference is reported only when a
test confirms it (`differences`, `effects`). The rules are in docs/explanation/statistics.md.
`cells` needs no scientific library, the others do.
"""
