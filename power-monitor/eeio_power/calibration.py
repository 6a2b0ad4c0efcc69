"""Calibrations of meters against a reference meter: their file, and what they change in a reading.

    P' = gain x P + offset_w        E' = gain x E + offset_w x duration

A calibration is valid on the machine and with the kernel release where it was made, for the same
spec, and in its range of power extended by a tenth at either end. Elsewhere a reading is as without
it, with a note. `eeio meter calibrate --reference` makes them.

The file `calibrations.json` in the user's data folder has one list per machine. Its key is derived
from /etc/machine-id as machine-id(5) requires, so the file does not contain that id.
"""

import hashlib
import hmac
import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eeio_limits import LimitError, inputs
from eeio_limits import quantities as q
from eeio_power.errors import PowerError
from eeio_power.meters import Meter
from eeio_power.reading import DOMAINS, Domain

SCHEMA_VERSION = 1
MARGIN = 0.1
"""Share of the range of power by which it is extended at either end."""
_MACHINE_ID = Path("/etc/machine-id")
_TEXTS = ("meter", "spec", "reference", "kernel", "date")


@dataclass(frozen=True)
class Calibration:
    """One domain of one meter. A calibrated power P' is wrong by at most
    `limit_w + limit_relative x P'` in 95 % of cases."""

    meter: str
    """Its name in readings."""
    spec: str
    domain: Domain
    gain: float
    offset_w: float
    limit_w: float
    """Half width of the 95 % prediction interval, W, with the resolution of the reference."""
    limit_relative: float
    """Accuracy class of the reference."""
    least_w: float
    """The lowest mean power of a step, W, as the meter read it ..."""
    most_w: float
    """... and the highest."""
    reference: str
    """The spec of the reference."""
    kernel: str
    """The kernel release."""
    date: str
    """In UTC."""
    seed: int
    """Of the order of the steps."""
    steps: tuple[tuple[float, float], ...]
    """Mean power, W, of the meter and of the reference in each step, in their order."""
    temperature_c: tuple[float, float] | None = None
    """The lowest and the highest temperature of the hottest sensor at the end of steps, °C."""
    unusable: str | None = None
    """Why it is not valid for the meter that was opened."""

    @property
    def remark(self) -> str:
        """For readings that it changes."""
        return (
            f"calibrated against {self.reference} on {self.date}: gain {self.gain:.4g}, "
            f"offset {self.offset_w:+.3g} W"
        )

    def note(self, power_w: float) -> str | None:
        """Why it does not change a reading of this mean power, W; None if it does."""
        margin_w = MARGIN * (self.most_w - self.least_w)
        low_w, high_w = self.least_w - margin_w, self.most_w + margin_w
        why = self.unusable
        if why is None and not low_w <= power_w <= high_w:
            why = f"the power is outside its range from {low_w:.3g} W to {high_w:.3g} W"
        if why is None:
            return None
        return f"not calibrated: {why} (against {self.reference} on {self.date})"

    def power_w(self, power_w: float) -> float:
        """The calibrated power, W."""
        return self.gain * power_w + self.offset_w

    def limit_of_w(self, power_w: float) -> float:
        """The limit of the error of a calibrated power, W."""
        return self.limit_w + self.limit_relative * abs(power_w)


def of_domain(calibrations: Sequence[Calibration], domain: str) -> Calibration | None:
    """The one of that domain."""
    return next((found for found in calibrations if found.domain == domain), None)


def of_meter(meter: Meter) -> tuple[Calibration, ...]:
    """Those of an open meter on this machine. Raises PowerError."""
    return tuple(
        found if found.spec == meter.spec or found.unusable is not None
        else replace(found, unusable=f"it is of {found.spec}, and this meter is {meter.spec}")
        for found in stored()
        if found.meter == meter.name
    )  # fmt: skip


def stored() -> list[Calibration]:
    """All of this machine. Raises PowerError for a damaged file."""
    kernel = platform.release()
    return [
        found if found.kernel == kernel
        else replace(found, unusable=f"it was made with kernel {found.kernel}, this is {kernel}")
        for found in load(path()).get(_machine(), [])
    ]  # fmt: skip


def store(new: Calibration) -> None:
    """Replaces the one of the same meter and domain on this machine. Raises PowerError."""
    machine = _machine()
    if not machine:
        raise PowerError(
            f"{_MACHINE_ID} has no id of this machine, so no calibration can be stored; "
            "`systemd-machine-id-setup` writes one"
        )
    every = load(path())
    others = [c for c in every.get(machine, []) if (c.meter, c.domain) != (new.meter, new.domain)]
    _save({**every, machine: [*others, new]})


def forget(meter: str) -> int:
    """Removes those of a meter, by its name, and returns how many. Raises PowerError."""
    every, machine = load(path()), _machine()
    left = [found for found in every.get(machine, []) if found.meter != meter]
    removed = len(every.get(machine, [])) - len(left)
    if removed:
        _save({**every, machine: left})
    return removed


def read(body: Mapping[str, Any]) -> Calibration:
    """A calibration as JSON has it. Raises LimitError, KeyError, TypeError."""
    span = body.get("temperature_c")
    found = Calibration(
        **{
            **body,
            "seed": q.COUNT.whole_number(body["seed"], "seed"),
            "steps": tuple(_two(pair, q.POWER_SAMPLE, "steps") for pair in body["steps"]),
            "temperature_c": None if span is None else _two(span, q.FIGURE, "temperature_c"),
        }
    )
    texts = [getattr(found, name) for name in _TEXTS]
    if not all(isinstance(text, str) for text in texts) or found.domain not in DOMAINS:
        raise LimitError("a calibration without meter, reference, kernel, date or domain")
    if found.unusable is not None and not isinstance(found.unusable, str):
        raise LimitError("a calibration with an invalid note")
    q.FRACTION.checked(found.gain, "gain")
    q.FRACTION.checked(found.limit_relative, "limit_relative")
    q.ENERGY.checked(found.limit_w, "limit_w")
    for name in ("offset_w", "least_w", "most_w"):
        q.POWER_SAMPLE.checked(getattr(found, name), name)
    return found


def _two(values: Sequence[float], quantity: q.Quantity, name: str) -> tuple[float, float]:
    one, other = values
    return quantity.checked(one, name), quantity.checked(other, name)


def path() -> Path:
    """The file in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "eeio/calibrations.json"


def load(file: Path) -> dict[str, list[Calibration]]:
    """Key of a machine -> its calibrations; none if there is no file. Raises PowerError."""
    try:
        body = inputs.read_json(file)
        if body["schema_version"] != SCHEMA_VERSION:
            raise LimitError(f"schema_version {body['schema_version']!r:.20} is unknown")
        return {
            str(name): [read(each) for each in every] for name, every in body["machines"].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, LimitError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise PowerError(
            f"{file}: no calibrations that eeio stored ({error!s:.200}); remove it and calibrate "
            "again"
        ) from error


def _save(machines: Mapping[str, Sequence[Calibration]]) -> None:
    file = path()
    body = {
        "schema_version": SCHEMA_VERSION,
        "machines": {name: [asdict(each) for each in every] for name, every in machines.items()},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise PowerError(f"{file}: cannot be written: {error.strerror}") from error


def _machine() -> str:
    """The key of this machine; empty if it has no id, as in many containers."""
    with suppress(OSError, LimitError):
        if text := inputs.read_bytes(_MACHINE_ID, inputs.SAMPLE_BYTES).strip():
            return hmac.new(text, b"eeio calibrations", hashlib.sha256).hexdigest()[:32]
    return ""
