"""tar, rsync, zstd and cp of a tree of files; the profile writes `eeio.json`."""

from eeio.record.tools.description import About
from eeio.record.tools.native import parse as parse

ABOUT = About(named=("action", "copy"))
