"""db_bench of RocksDB; the profile writes `eeio.json`."""

from eeio_results.tools.description import About
from eeio_results.tools.native import parse as parse

ABOUT = About(bytes_of="process", named=("workload", "sync"))
