"""`eeio meter check`: how good a meter is, without a load."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.plugin import InProcess

from eeio.measure.calibration.check import Checked, check, verdicts
from eeio_power.delay import Delay
from eeio_power.meters import Channel
from eeio_power.reading import Kind


class Slow:
    """A meter whose value changes at each `every`-th reading only, as that of a BMC."""

    spec = name = "slow"
    kind: Kind = "measured"
    native_period_s = 0.05

    def __init__(self, every: int, accuracy: float = 0.02, value_w: float | None = 100.0) -> None:
        delay = Delay(1.0, 0.0, 0.5, 0.0, "a test")
        self.channels: Sequence[Channel] = (
            Channel(
                "slow",
                "system",
                "power_w",
                accuracy_relative=accuracy,
                resolution=0.5,
                delay=delay,
            ),
        )
        self._every, self._value_w, self._count = every, value_w, 0

    def read(self) -> Sequence[float | None]:
        self._count += 1
        if self._value_w is None:
            return [None]
        return [self._value_w + 0.5 * (self._count // self._every % 7)]

    def close(self) -> None:
        """Nothing is open."""


def checked(meter: Slow, lasts_s: float = 2.0) -> Checked:
    (found,) = check([meter], 20.0, lasts_s)
    return found


def test_a_value_that_changes_seldom_needs_longer_phases() -> None:
    often, seldom = checked(Slow(1)), checked(Slow(8))
    assert often.changes_s is not None and seldom.changes_s is not None
    assert seldom.changes_s > 3 * often.changes_s
    (_, ranked_s), (fine_s, rarely_s) = often.windows_s, seldom.windows_s
    assert ranked_s is not None and fine_s is not None and rarely_s is not None
    assert rarely_s > ranked_s and fine_s >= rarely_s
    assert seldom.resolution == 0.5 and seldom.unit == "W"
    assert seldom.delay.startswith("1 ± 0.5 s late")


def test_an_accuracy_above_the_limit_is_not_good_enough() -> None:
    poor = checked(Slow(1, accuracy=0.2), 0.5)
    assert poor.windows_s == (None, None)
    assert poor.verdict == "not good enough: its accuracy is 20 %"
    middle = checked(Slow(1, accuracy=0.07), 0.5)
    assert middle.windows_s[0] is None and "no phase at 5 %" in middle.verdict


def test_a_meter_without_a_value_is_not_usable() -> None:
    silent = checked(Slow(1, value_w=None), 0.5)
    assert silent.power_w is None and silent.verdict.startswith("not good enough: ")
    assert verdicts([silent]) == [f"slow (system): {silent.verdict}"]


def test_missing_readings_are_not_good_enough() -> None:
    class Gaps(Slow):
        def read(self) -> Sequence[float | None]:
            value = super().read()
            return [None] if self._count % 10 else value

    gaps = checked(Gaps(1))
    assert gaps.why_not is not None and "of its readings have a value" in gaps.verdict


def test_limits_of_a_window_are_no_limits_of_the_meter() -> None:
    grades = checked(Slow(1), 0.5).grades
    assert set(grades) == {"spec", "emerald", "green500-l1", "lab"}
    text = json.dumps(grades)
    assert "a window of" not in text and "settled" not in text and "steady load" not in text
    assert "requires 10 per second" not in text and "each 5 s" not in text


def test_the_verdict_is_the_first_line(home: Path, tmp_path: Path, in_process: InProcess) -> None:
    out = in_process("meter", "check", "demo", "--seconds", "1").out.splitlines()
    assert out[0].startswith("demo (system, package, device): good enough for phases of ")
    assert out[-1].startswith("next: `eeio meter calibrate --meter demo`")
    body = json.loads(
        in_process("meter", "check", "demo", "--seconds", "1", "--suite", "eeio-suite",
                   "--preset", "quick", "--directory", str(tmp_path), "--format", "json").out
    )  # fmt: skip
    assert [meter["domain"] for meter in body["meters"]] == ["system", "package", "device"]
    assert all(math.isfinite(window_s) for m in body["meters"] for window_s in m["windows_s"])
    assert "eeio-suite: demo: resolves phases of " in body["suite"][0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nothing",), "there is no meter 'nothing'"),
        (("demo", "--suite", "nosuite"), "nosuite"),
        (("demo", "--seconds", "0"), "not a number of seconds"),
    ],
)
def test_bad_input(home: Path, in_process: InProcess, arguments: tuple[str, ...], why: str) -> None:
    assert why in in_process("meter", "check", *arguments, code=2).err
