"""What a number may be."""

import math

import pytest

from eeio.errors import LimitError
from eeio.units import quantities
from eeio.units.names import campaign_name
from eeio.units.quantities import (
    BANDWIDTH,
    COUNT,
    DURATION,
    POWER,
    Quantity,
    of_name,
    of_unit,
    shortened,
)

KINDS = [value for value in vars(quantities).values() if isinstance(value, Quantity)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 10**400, -(10**400), True, False, None, "5", [1], 1e300],
)
def test_no_kind_takes_what_is_no_number(kind: Quantity, value: object) -> None:
    assert not kind.contains(value)
    with pytest.raises(LimitError, match="the power of x"):
        kind.checked(value, "the power of x")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_range_contains_its_ends_and_nothing_beyond(kind: Quantity) -> None:
    assert kind.contains(kind.least) and kind.contains(kind.most)
    assert not kind.contains(math.nextafter(kind.least, -math.inf))
    assert not kind.contains(math.nextafter(kind.most, math.inf))


def test_a_whole_number_has_no_fraction() -> None:
    assert COUNT.whole_number(4.0) == 4
    with pytest.raises(LimitError):
        COUNT.whole_number(4.5)
    with pytest.raises(LimitError):
        DURATION.whole_number(4.5)


@pytest.mark.parametrize("text", ["nan", "inf", "-5", "1e999", "9" * 5000, "", "x", "0x10"])
def test_a_text_that_is_no_power(text: str) -> None:
    with pytest.raises(LimitError):
        POWER.of_text(text)


def test_units_stand_in_names() -> None:
    assert of_name("write_bandwidth_bytes_per_s") is BANDWIDTH
    assert of_name("latency_p99_s") is DURATION
    assert of_unit("B/s") is BANDWIDTH
    assert of_unit("1").name == "figure"


def test_messages_have_an_end() -> None:
    assert len(shortened("x" * 10**6)) < 100
    assert len(shortened(10**10_000)) < 100
    assert len(shortened([[0] * 10**5])) < 100
    assert len(str(LimitError("x" * 10**6))) < 2000


@pytest.mark.parametrize(
    "name", ["a", "before-upgrade", "suite-quick-20260101-120000", "A_b+c@d=1"]
)
def test_names_of_campaigns(name: str) -> None:
    assert campaign_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "-x", ".x", "a b", "ä", "a\n", "a\0", "\udcff", "a" * 129, "~"],
)
def test_names_that_no_campaign_has(name: str) -> None:
    with pytest.raises(LimitError, match="campaign name"):
        campaign_name(name)
