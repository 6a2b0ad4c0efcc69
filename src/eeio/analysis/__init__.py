"""What records mean: observation -> metric -> summary -> characterization.

May import `eeio.record`, `eeio.traces`, `eeio.statistics`, `eeio.units` and `eeio.files`.
"""
