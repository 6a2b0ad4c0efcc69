"""Calibrations of meters: their file, and what they change in a reading.

Against a reference meter (`Calibration`):

    P' = gain x P + offset_w        E' = gain x E + offset_w x duration

A calibration is valid on the machine and with the kernel release where it was made, for the same
spec, and in its range of power extended by a tenth at either end. Elsewhere a reading is as without
it, with a note. `eeio meter calibrate --reference` makes them.

Of the delay of a meter (`eeio_power.delay`), by the spec of the meter. `eeio meter calibrate
--meter` makes them.

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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from eeio.errors import LimitError
from eeio.files import inputs
from eeio.files.trust import make_folder
from eeio.record.reasons import CALIBRATED
from eeio.units import quantities as q
from eeio_power import delay
from eeio_power.delay import Delay, assumed, stated
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Meter, about, number_option, parse_spec
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
            f"{CALIBRATED}{self.reference} on {self.date}: gain {self.gain:.4g}, "
            f"offset {self.offset_w:+.3g} W"
        )

    def note(self, power_w: float) -> str | None:
        """Why it does not change a reading of this mean power, W; None if it does."""
        margin_w = MARGIN * (self.most_w - self.least_w)
        low_w, high_w = self.least_w - margin_w, self.most_w + margin_w
        reason = self.unusable
        if reason is None and not low_w <= power_w <= high_w:
            reason = f"the power is outside its range from {low_w:.3g} W to {high_w:.3g} W"
        if reason is None:
            return None
        return f"not calibrated: {reason} (against {self.reference} on {self.date})"

    def power_w(self, power_w: float) -> float:
        """The calibrated power, W."""
        return self.gain * power_w + self.offset_w

    def limit_of_w(self, power_w: float) -> float:
        """The limit of the error of a calibrated power, W."""
        return self.limit_w + self.limit_relative * abs(power_w)


def of_domain(calibrations: Sequence[Calibration], domain: str) -> Calibration | None:
    """The one of that domain."""
    for calibration in calibrations:
        if calibration.domain == domain:
            return calibration
    return None


def of_meter(meter: Meter) -> tuple[Calibration, ...]:
    """Those of an open meter on this machine. Raises PowerError."""
    return tuple(
        calibration
        if calibration.spec == meter.spec or calibration.unusable is not None
        else replace(
            calibration, unusable=f"it is of {calibration.spec}, and this meter is {meter.spec}"
        )
        for calibration in stored()
        if calibration.meter == meter.name
    )


@dataclass(frozen=True)
class File:
    """What the file has of one machine."""

    calibrations: tuple[Calibration, ...] = ()
    delays: Mapping[str, Delay] = field(default_factory=dict)
    """By the spec of the meter."""


def delayed_channels(meter: Meter) -> tuple[Channel, ...]:
    """The channels of the meter, each with its delay: of the options of its spec, else of a
    calibration, else its own, else that of its kind. Raises PowerError."""
    kind, options = parse_spec(meter.spec)
    lag_s = number_option(meter.spec, options, "lag_s")
    averages_s = number_option(meter.spec, options, "averages_s")
    calibrated = stored_delays().get(meter.spec)
    channels = []
    for channel in meter.channels:
        known = calibrated or channel.delay or about(kind).delay
        for option, value in (("lag_s", lag_s), ("averages_s", averages_s)):
            if value is not None and value > delay.MOST_S:
                raise PowerError(
                    f"meter '{meter.spec}': {option}={value:g} is more than {delay.MOST_S:g} s"
                )
        if lag_s is not None or averages_s is not None:
            known = known or assumed(channel.quantity, channel.domain)
            known = stated(known, lag_s, averages_s)
        channels.append(replace(channel, delay=known))
    return tuple(channels)


def hidden_s(meter: Meter) -> float:
    """The longest `Delay.hidden_s` of the meter's channels of power. Raises PowerError."""
    delays = [c.delay for c in delayed_channels(meter) if c.quantity == "power_w"]
    return max((delay.hidden_s for delay in delays if delay is not None), default=0.0)


def stored() -> list[Calibration]:
    """All of this machine. Raises PowerError for a damaged file."""
    kernel = platform.release()
    return [
        calibration
        if calibration.kernel == kernel
        else replace(
            calibration, unusable=f"it was made with kernel {calibration.kernel}, this is {kernel}"
        )
        for calibration in load(path()).get(_machine(), File()).calibrations
    ]


def stored_delays() -> Mapping[str, Delay]:
    """Those of this machine, by the spec of the meter. Raises PowerError for a damaged file."""
    return load(path()).get(_machine(), File()).delays


def store(new: Calibration) -> None:
    """Replaces the one of the same meter and domain on this machine. Raises PowerError."""
    machine = _known_machine()
    every = load(path())
    before = every.get(machine, File())
    others = [c for c in before.calibrations if (c.meter, c.domain) != (new.meter, new.domain)]
    _save({**every, machine: replace(before, calibrations=(*others, new))})


def store_delay(spec: str, new: Delay) -> None:
    """Replaces the one of the same meter on this machine. Raises PowerError."""
    machine = _known_machine()
    every = load(path())
    before = every.get(machine, File())
    _save({**every, machine: replace(before, delays={**before.delays, spec: new})})


def forget(meter: str) -> int:
    """Removes those of a meter, by its name, and its delay, by its name or its spec; returns how
    many. Raises PowerError."""
    every, machine = load(path()), _machine()
    before = every.get(machine, File())
    left = tuple(calibration for calibration in before.calibrations if calibration.meter != meter)
    delays = {}
    for spec, known in before.delays.items():
        if meter not in (spec, parse_spec(spec)[0]):
            delays[spec] = known
    removed = len(before.calibrations) + len(before.delays) - len(left) - len(delays)
    if removed:
        _save({**every, machine: File(left, delays)})
    return removed


def read(body: Mapping[str, Any]) -> Calibration:
    """A calibration as JSON has it. Raises LimitError, KeyError, TypeError."""
    span = body.get("temperature_c")
    calibration = Calibration(
        **{
            **body,
            "seed": q.COUNT.whole_number(body["seed"], "seed"),
            "steps": tuple(_two(pair, q.POWER_SAMPLE, "steps") for pair in body["steps"]),
            "temperature_c": None if span is None else _two(span, q.FIGURE, "temperature_c"),
        }
    )
    texts = [getattr(calibration, name) for name in _TEXTS]
    if not all(isinstance(text, str) for text in texts) or calibration.domain not in DOMAINS:
        raise LimitError("a calibration without meter, reference, kernel, date or domain")
    if calibration.unusable is not None and not isinstance(calibration.unusable, str):
        raise LimitError("a calibration with an invalid note")
    q.FRACTION.checked(calibration.gain, "gain")
    q.FRACTION.checked(calibration.limit_relative, "limit_relative")
    q.ENERGY.checked(calibration.limit_w, "limit_w")
    for name in ("offset_w", "least_w", "most_w"):
        q.POWER_SAMPLE.checked(getattr(calibration, name), name)
    return calibration


def _two(values: Sequence[float], quantity: q.Quantity, name: str) -> tuple[float, float]:
    first, second = values
    return quantity.checked(first, name), quantity.checked(second, name)


def path() -> Path:
    """The file in the user's data folder."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "eeio/calibrations.json"


def load(file: Path) -> dict[str, File]:
    """Key of a machine -> what the file has of it; none if there is no file. Raises PowerError."""
    try:
        body = inputs.read_json(file)
        if body["schema_version"] != SCHEMA_VERSION:
            raise LimitError(f"schema_version {body['schema_version']!r:.20} is unknown")
        delays = body.get("delays", {})
        return {
            str(name): File(
                tuple(map(read, body["machines"].get(name, ()))),
                {str(spec): delay.read(known) for spec, known in delays.get(name, {}).items()},
            )
            for name in {**body["machines"], **delays}
        }
    except FileNotFoundError:
        return {}
    except (OSError, LimitError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise PowerError(
            f"{file}: no calibrations that eeio stored ({error!s:.200}); remove it and calibrate "
            "again"
        ) from error


def _save(machines: Mapping[str, File]) -> None:
    file = path()
    body = {
        "schema_version": SCHEMA_VERSION,
        "machines": {
            name: list(map(asdict, known.calibrations)) for name, known in machines.items()
        },
        "delays": {
            name: {spec: asdict(each) for spec, each in known.delays.items()}
            for name, known in machines.items()
        },
    }
    try:
        make_folder(file.parent)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise PowerError(f"{file}: cannot be written: {error.strerror}") from error


def _known_machine() -> str:
    """The key of this machine. Raises PowerError if it has no id."""
    machine = _machine()
    if not machine:
        raise PowerError(
            f"{_MACHINE_ID} has no id of this machine, so no calibration can be stored; "
            "`systemd-machine-id-setup` writes one"
        )
    return machine


def _machine() -> str:
    """The key of this machine; empty if it has no id, as in many containers."""
    with suppress(OSError, LimitError):
        if text := inputs.read_bytes(_MACHINE_ID, inputs.SAMPLE_BYTES).strip():
            return hmac.new(text, b"eeio calibrations", hashlib.sha256).hexdigest()[:32]
    return ""
