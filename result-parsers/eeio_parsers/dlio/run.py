"""DLIO, training of a model from files; the profile writes `eeio.json`."""

from eeio_results.tools.description import About
from eeio_results.tools.native import parse as parse

ABOUT = About(program="dlio_benchmark", named=("workload",))
