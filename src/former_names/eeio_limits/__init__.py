"""A former name: the modules are in `eeio.units`, `eeio.files` and `eeio.record` now."""

from eeio import former_names
from eeio.errors import LimitError, ShortError

__all__ = ["LimitError", "ShortError"]

former_names.install()
