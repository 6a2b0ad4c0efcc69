"""Transactions of SQLite; the profile writes `eeio.json`."""

from eeio_results.tools.description import About
from eeio_results.tools.native import parse as parse

ABOUT = About(bytes_of="process", named=("journal", "synchronous"))
