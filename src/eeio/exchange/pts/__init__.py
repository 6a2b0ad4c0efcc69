"""The Phoronix Test Suite: reading and writing its result files, and requests of its module."""
