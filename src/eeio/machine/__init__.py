"""The system under test: devices, file systems, cache layers, frequency; changes to it and their
undo journal.

Measurements use it. May import what is below `eeio.measure`, and `eeio_power`.
"""
