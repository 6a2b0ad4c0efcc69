"""The `eeio` command: campaigns over PTS profiles and suites, and the target they run on."""

import sys

__version__ = "1.0.0"

# Before anything that an older Python cannot read: it would fail far from the reason.
if sys.version_info < (3, 11):  # noqa: UP036
    raise SystemExit(
        f"eeio: this is Python {sys.version_info[0]}.{sys.version_info[1]}; eeio requires 3.11 "
        "or newer. Run scripts/setup for instructions"
    )
