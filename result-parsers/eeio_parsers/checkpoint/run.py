"""Checkpoints of several processes; the profile writes `eeio.json`."""

from eeio_results.tools.description import FSYNC, About
from eeio_results.tools.native import parse as parse

ABOUT = About(words=FSYNC, named=("compute",))
