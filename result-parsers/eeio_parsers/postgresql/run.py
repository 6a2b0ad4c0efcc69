"""pgbench on PostgreSQL; the profile writes `eeio.json`."""

from eeio.record.tools.description import FSYNC, About
from eeio.record.tools.native import parse as parse

ABOUT = About(
    bytes_of="process",
    words=FSYNC,
    named=("synchronous_commit", "clients"),
)
