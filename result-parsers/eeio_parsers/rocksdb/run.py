"""db_bench of RocksDB; the profile writes `eeio.json`."""

from eeio.record.tools.description import About
from eeio.record.tools.native import parse as parse

ABOUT = About(bytes_of="process", named=("workload", "sync"))
