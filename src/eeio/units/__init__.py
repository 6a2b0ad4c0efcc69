"""Numbers, sizes, names and external text: what is valid, and how it is printed.

Imports only the standard library and `eeio.errors`.
"""
