"""The `eeio` command: campaigns over PTS profiles and suites, and the target they run on."""

__version__ = "0.1.0"
