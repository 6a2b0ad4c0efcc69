"""Power over time of a stored campaign, from the samples that it kept."""

import gzip
import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.page.made import campaign

from eeio.measure.power_series import power_series
from eeio.record.store import Campaign
from eeio_power.meters import Channel
from eeio_power.samples import DomainPower, MeterInfo, header_line


def _stored(folder: Path, info: MeterInfo, lines: str) -> Campaign:
    (folder / "samples").mkdir()
    with gzip.open(folder / "samples/power-0001.csv.gz", "wt") as file:
        file.write(header_line([info], 0.0, "2026-01-01T00:00:00+00:00") + lines)
    return replace(campaign(1, 1), folder=folder)


def test_the_channels_of_a_domain_are_added_and_a_failed_read_is_a_gap(tmp_path: Path) -> None:
    channels = (
        Channel("a", "system", "power_w"),
        Channel("b", "system", "power_w"),
        Channel("part", "system", "power_w", in_domain_total=False),
    )
    info = MeterInfo("m", "m", "measured", 1.0, 1.0, channels)
    made = _stored(tmp_path, info, "1.0,0,5.0\n1.0,1,2.0\n1.0,2,9\n2.0,0,6.0\n2.0,1,\n")
    (series,) = power_series(made)
    assert series.key == ("system", "m", "measured") and list(series.times_s) == [1.0, 2.0]
    assert series.watts[0] == 7.0 and math.isnan(series.watts[1])


def test_a_counter_becomes_power_also_where_it_wraps(tmp_path: Path) -> None:
    channels = (Channel("c", "package", "energy_j", range_j=100.0),)
    info = MeterInfo("m", "m", "measured", 0.1, 0.1, channels)
    lines = "1.0,0,90.0\n1.1,0,95.0\n1.2,0,0.0\n1.21,0,0.9\n1.3,0,5.0\n"
    (series,) = power_series(_stored(tmp_path, info, lines))
    # The extra reading at 1.21 s is joined with the next: it would be 90 W beside 50 W.
    assert list(series.times_s) == [1.0, 1.1, 1.2, 1.3]
    assert math.isnan(series.watts[0])
    assert list(series.watts[1:]) == pytest.approx([50.0, 50.0, 50.0])


def test_the_median_is_of_what_was_read_in_the_window() -> None:
    """One that wakes now and then has a higher mean; a failed read is no reading."""
    watts = [50.0, 5.0, 5.0, 90.0, 5.0, math.nan, 50.0]
    power = DomainPower("system", [float(second) for second in range(7)], watts)
    assert power.median_w(0.0, 5.0) == 5.0
    assert power.median_w(4.0, 5.5) is None
    assert power.median_w(2.0, 4.0) == 47.5


def test_without_samples_or_with_damaged_ones_there_is_no_series(tmp_path: Path) -> None:
    made = replace(campaign(1, 1), folder=tmp_path)
    assert power_series(made) == []
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples/power-0001.csv.gz").write_bytes(b"no gzip")
    assert power_series(made) == []
