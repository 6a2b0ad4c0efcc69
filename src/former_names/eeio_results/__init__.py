"""`load` for notebooks and scripts (docs/reference/stability.md); for the rest a former name: the
modules are in `eeio.record`, `eeio.analysis`, `eeio.report` and others now."""

from eeio import former_names
from eeio.record.by_name import load

__all__ = ["load"]

former_names.install()
