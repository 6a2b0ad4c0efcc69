"""pgbench on PostgreSQL; the profile writes `eeio.json`."""

from eeio_results.tools.description import FSYNC, About
from eeio_results.tools.native import parse as parse

ABOUT = About(
    bytes_of="process",
    words=FSYNC,
    named=("synchronous_commit", "clients"),
)
