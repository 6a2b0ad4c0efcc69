"""Creates, looks up and deletes files; the profile writes `eeio.json`."""

from eeio_results.tools.description import FSYNC, About
from eeio_results.tools.native import parse as parse

ABOUT = About(
    words={
        **FSYNC,
        ("layout", "own"): "separate folders",
        ("mode", "fork"): "fork",
    },
    named=(),
)
