"""The Phoronix Test Suite: its result files, the power session and MB/J for its module.

May import what `eeio.measure` may, and `eeio.measure`.
"""
