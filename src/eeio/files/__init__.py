"""Files and modules of others: size limits, YAML and XML, mounts, and which files no other user
can replace.

May import `eeio.units` and `eeio.errors`.
"""
