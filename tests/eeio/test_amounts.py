"""Shares, times and rated writes as options write them."""

import pytest

from eeio.errors import LimitError
from eeio.units.amounts import decimal_bytes, duty, seconds, share


@pytest.mark.parametrize(("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("100 %", 1.0), ("0", 0)])
def test_a_share_is_a_number_or_a_percentage(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["10", "-1%", "101%", "nan", "%", "", "a tenth", "1" * 99])
def test_other_shares_are_rejected(text: str) -> None:
    with pytest.raises(LimitError):
        share(text)


def test_what_is_never_in_use_has_no_duty_cycle() -> None:
    with pytest.raises(LimitError, match="never in use"):
        duty("0%")


@pytest.mark.parametrize(("text", "value"), [("5ms", 5e-3), ("250us", 250e-6), ("0.1 s", 0.1)])
def test_a_time_has_its_unit(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "5 minutes", "-1ms", "0s", "ms", "infs", ""])
def test_other_times_are_rejected(text: str) -> None:
    with pytest.raises(LimitError):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"), [("150T", 150e12), ("600 GB", 600e9), ("1.2P", 1.2e15), ("0.5tb", 0.5e12)]
)
def test_rated_writes_are_in_powers_of_ten(text: str, value: float) -> None:
    assert decimal_bytes(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "T", "150", "0T", "-1T", "nanT", "1e99T", "150TiB", "1 2T"])
def test_other_rated_writes_are_rejected(text: str) -> None:
    with pytest.raises(LimitError):
        decimal_bytes(text)
