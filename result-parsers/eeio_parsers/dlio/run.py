"""DLIO, training of a model from files; the profile writes `eeio.json`."""

from eeio.record.tools.description import About
from eeio.record.tools.native import parse as parse

ABOUT = About(program="dlio_benchmark", named=("workload",))
