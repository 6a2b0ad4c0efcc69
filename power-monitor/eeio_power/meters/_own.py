"""A user's meter in a folder of EEIO_METERS: its module defines the same names as eeio's meters.

The imported code runs with the rights of eeio's user (SECURITY.md).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eeio.files.modules import raised
from eeio_power.errors import PowerError
from eeio_power.reading import DOMAINS, KINDS

_OFFERS = ("OPTIONS", "open_meter", "find")
_ABOUT = ("DELAY", "VERIFIED_ON", "VERIFIED_WITH", "MEASURES", "READS")


class Guarded:
    """A module of others: whatever its functions raise becomes a PowerError. `finding` is the type
    that its `find` gives."""

    def __init__(self, name: str, module: Any, finding: type) -> None:
        path = Path(module.__file__)
        for offer in _OFFERS:
            if not hasattr(module, offer):
                raise PowerError(
                    f"meter '{name}': {path} defines no {offer}; see docs/how-to/adding-a-meter.md"
                )
        self._finding = finding
        self._name = name
        self._path = path
        self._module = module
        self.OPTIONS = module.OPTIONS
        self.ARGUMENT = getattr(module, "ARGUMENT", None)
        for name in _ABOUT:
            if hasattr(module, name):
                setattr(self, name, getattr(module, name))

    def open_meter(self, spec: str, options: Mapping[str, str], root: Path) -> Any:
        meter = self._called("open_meter", lambda: self._module.open_meter(spec, options, root))
        lacks = []
        for word in ("spec", "name", "kind", "native_period_s", "channels", "read", "close"):
            if not hasattr(meter, word):
                lacks.append(word)
        if lacks:
            raise PowerError(
                f"meter '{self._name}': {self._path}: the object from open_meter has no "
                f"{', '.join(lacks)}; see docs/how-to/adding-a-meter.md"
            )
        domains = {channel.domain for channel in meter.channels}
        if meter.kind not in KINDS or not domains <= set(DOMAINS) or not domains:
            raise PowerError(
                f"meter '{self._name}': {self._path}: its kind is one of {', '.join(KINDS)}, and "
                f"each of its channels has a domain of {', '.join(DOMAINS)}"
            )
        return meter

    def find(self, root: Path) -> Any:
        finding = self._called("find", lambda: self._module.find(root))
        if not isinstance(finding, self._finding):
            raise PowerError(f"meter '{self._name}': {self._path}: find gives no Detected")
        return finding

    def _called(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except PowerError:
            raise
        except Exception as error:
            raise PowerError(
                f"meter '{self._name}': {what} failed: {raised(error, self._path)}"
            ) from error
