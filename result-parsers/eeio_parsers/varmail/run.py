"""A mail server's files; the profile writes `eeio.json`."""

from eeio.record.tools.description import FSYNC, About
from eeio.record.tools.native import parse as parse

ABOUT = About(words=FSYNC, named=())
