"""Differences between experiments: which factor changes what, by how much, and how surely.

A cell is one experiment on one machine and device with the values of its repetitions (`cells`). Two
cells that differ in one factor alone make a pair (`pairing`); a difference is told only when a test
confirms it (`differences`, `effects`). The rules are in docs/explanation/statistics.md. `cells`
needs no scientific library, the others do.
"""
