"""An object store; the profile writes `eeio.json`."""

from eeio.record.tools.description import About
from eeio.record.tools.native import parse as parse

ABOUT = About(named=())
