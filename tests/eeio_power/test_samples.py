"""The samples file: written, cut off, damaged, read back."""

import gzip
import json
import math
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eeio_power.errors import PowerError
from eeio_power.meters import Channel
from eeio_power.samples import (
    MeterInfo,
    MeterSamples,
    header_line,
    load,
    power_over_time,
    sample_lines,
)

NAN = math.nan

INFOS = (
    MeterInfo(
        "rapl",
        "rapl",
        "measured",
        0.001,
        0.1,
        (
            Channel("rapl:package-0", "package", "energy_j", 262143.0, 0.05, 6e-5, True, 500.0),
            Channel("rapl:package-0/dram", "dram", "energy_j"),
        ),
    ),
    MeterInfo("wall", "wall", "measured", 1.0, 1.0, (Channel("wall", "system", "power_w"),)),
)


def lines(count: int) -> str:
    text = ""
    for k in range(count):
        time_s = round(7.0 + 0.1 * k, 6)
        text += sample_lines(time_s, 0, [3.3 * k, math.nan if k == 4 else 1.0 * k])
        if k % 10 == 0:
            text += sample_lines(time_s + 0.01, 2, [120.0])
    return text


def write(path: Path, body: str) -> bytes:
    data = gzip.compress((header_line(INFOS, 7.0, "2024-01-01T00:00:00+00:00") + body).encode())
    path.write_bytes(data)
    return data


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "s.gz", lines(50))
    samples = load(tmp_path / "s.gz")
    assert not samples.truncated
    assert tuple(m.info for m in samples.meters) == INFOS
    rapl, wall = samples.meters
    assert len(rapl.times_s) == 50
    assert rapl.series("rapl:package-0", 7.15, 7.35) == [(7.2, 6.6), (7.3, pytest.approx(9.9))]
    assert rapl.series("rapl:package-0/dram")[4] == (7.4, None)
    assert [v for _, v in wall.series("wall")] == [120.0] * 5
    package, _, _ = samples.energy(8.0, 10.0)
    assert package.energy_j == pytest.approx(66.0)
    with pytest.raises(PowerError, match="no channel 'core'; it has: rapl:package-0"):
        rapl.series("core")


@given(value=st.floats(allow_nan=False, allow_infinity=False), time_s=st.floats(0, 1e9))
def test_numbers_survive_exactly(value: float, time_s: float) -> None:
    time_text, index, value_text = sample_lines(time_s, 3, [value]).strip().split(",")
    assert (float(time_text), index, float(value_text)) == (time_s, "3", value)


def test_a_file_cut_anywhere_is_good_up_to_the_cut(tmp_path: Path) -> None:
    # As the sampler writes it: a flushed stream, not one block that ends at the end of the file.
    stream = zlib.compressobj(wbits=31)
    data = b""
    text = header_line(INFOS, 7.0, "2024-01-01T00:00:00+00:00") + lines(200)
    for k in range(0, len(text), 500):
        data += stream.compress(text[k : k + 500].encode()) + stream.flush(zlib.Z_SYNC_FLUSH)
    path = tmp_path / "s.gz"
    path.write_bytes(data)
    complete = load(path)
    assert complete.truncated, "the stream was never finished"
    full = list(complete.meters[0].times_s)
    assert len(full) == 200
    observed = []
    for cut in range(800, len(data), 97):
        path.write_bytes(data[:cut])
        part = load(path)
        times_s = list(part.meters[0].times_s)
        assert part.truncated
        assert times_s == full[: len(times_s)]
        values = [v for _, v in part.meters[0].series("rapl:package-0")]
        assert values == pytest.approx([3.3 * k for k in range(len(values))]), "no half numbers"
        observed.append(len(times_s))
    assert observed == sorted(observed)
    assert observed[-1] > 150


def test_a_file_that_ends_in_zeros_is_good_up_to_them(tmp_path: Path) -> None:
    stream = zlib.compressobj(wbits=31)
    text = header_line(INFOS, 7.0, "2024-01-01T00:00:00+00:00") + lines(200)
    data = stream.compress(text.encode()) + stream.flush(zlib.Z_SYNC_FLUSH)
    (tmp_path / "s.gz").write_bytes(data + bytes(5000))
    samples = load(tmp_path / "s.gz")
    assert samples.truncated
    assert len(samples.meters[0].times_s) > 100


def test_files_that_cannot_be_judged(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    with pytest.raises(PowerError, match="cannot read"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(PowerError, match="no header line"):
        load(path)
    path.write_bytes(b"Watts,Volts\n1,2\n")
    with pytest.raises(PowerError, match="not a gzip samples file"):
        load(path)
    path.write_bytes(gzip.compress(b"Watts,Volts\n1,2\n"))
    with pytest.raises(PowerError, match="not a samples header"):
        load(path)
    path.write_bytes(gzip.compress(b'{"schema_version": 99, "meters": []}\n'))
    with pytest.raises(PowerError, match="schema_version 99"):
        load(path)
    path.write_bytes(
        gzip.compress(json.dumps({"schema_version": 1, "meters": [{}]}).encode() + b"\n")
    )
    with pytest.raises(PowerError, match="damaged"):
        load(path)


@pytest.mark.parametrize(
    "line", ["7.5,0", "7.5,0,x", "x,0,1", "7.5,9,1", "7.5,0,1,2", "7.5,-1,2", ""]
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    write(tmp_path / "s.gz", sample_lines(7.0, 0, [1.0]) + line + "\n")
    with pytest.raises(PowerError, match="line 3"):
        load(tmp_path / "s.gz")


@pytest.mark.parametrize(
    "line", ["7.5,0", "7.5,0,1,2", "900.0,0,1e400", "8.0,0,1.0", "900.0,0,nan"]
)
def test_a_damaged_line_among_many_is_named(tmp_path: Path, line: str) -> None:
    """Many lines are read at once where they are as they should be."""
    before = lines(5000)
    write(tmp_path / "s.gz", before + line + "\n" + sample_lines(901.0, 0, [1.0, 2.0]))
    with pytest.raises(PowerError, match=f"line {2 + before.count(chr(10))}"):
        load(tmp_path / "s.gz")


@pytest.mark.parametrize("missing", [None, 4000])
def test_many_reads_of_several_meters_are_read_back(tmp_path: Path, missing: int | None) -> None:
    times = [round(7.0 + 0.1 * k, 6) for k in range(8000)]
    body = ""
    for k, time_s in enumerate(times):
        body += sample_lines(time_s, 0, [math.nan if k == missing else 0.5 * k, 1.0 * k])
        if k % 10 == 0:
            body += sample_lines(time_s, 2, [100.0 + k])
    write(tmp_path / "s.gz", body)
    rapl, wall = load(tmp_path / "s.gz").meters
    assert list(rapl.times_s) == times
    assert [k for k, value in enumerate(rapl.values[0]) if value != 0.5 * k] == (
        [] if missing is None else [missing]
    )
    assert list(rapl.values[1]) == [1.0 * k for k in range(8000)]
    assert list(wall.times_s) == times[::10]
    assert list(wall.values[0]) == [100.0 + k for k in range(0, 8000, 10)]


def test_samples_of_the_first_version_are_read_and_damaged_contents_are_not(tmp_path: Path) -> None:
    header = json.loads(header_line(INFOS, 7.0, "2024-01-01T00:00:00+00:00"))
    path = tmp_path / "s.gz"

    def write() -> None:
        path.write_bytes(gzip.compress((json.dumps(header) + "\n" + lines(3)).encode()))

    write()
    assert load(path).meters[0].info == INFOS[0]
    channel = header["meters"][0]["channels"][0]
    channel["contents"] = {"includes": ["soul"], "leaves_out": []}
    write()
    with pytest.raises(PowerError, match="with unknown contents"):
        load(path)
    for reported in header["meters"]:
        for one in reported["channels"]:
            for key in ("contents", "remark", "counts"):
                del one[key]
    header["schema_version"] = 1
    write()
    assert len(load(path).meters[0].times_s) == 3


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("wrong", ["time", "index", "value"])
def test_reads_that_are_read_together_are_checked_one_by_one(
    tmp_path: Path, count: int, wrong: str
) -> None:
    """The last of some reads is wrong, and complete reads of plain numbers come before it."""
    body = "".join(sample_lines(7.0 + 0.1 * k, 0, [1.0 * k, 2.0 * k]) for k in range(count))
    body += {
        "time": sample_lines(6.9, 0, [1.0, 2.0]),
        "index": "20.0,1,2.0\n20.0,7,2.0\n",
        "value": sample_lines(20.0, 0, [1e300, 2.0]),
    }[wrong]
    write(tmp_path / "s.gz", body + sample_lines(30.0, 0, [1.0, 2.0]))
    place = 2 * count + 2 + (wrong == "index")
    with pytest.raises(PowerError, match=rf"line {place}\b"):
        load(tmp_path / "s.gz")


def test_parts_of_reads_in_any_order_come_to_their_channels(tmp_path: Path) -> None:
    body = "7.0,1,5.0\n7.0,0,4.0\n7.1,0,6.0\n7.2,1,9.0\n7.2,0,8.0\n"
    write(tmp_path / "s.gz", body)
    rapl, _ = load(tmp_path / "s.gz").meters
    assert rapl.series("rapl:package-0") == [(7.0, 4.0), (7.1, 6.0), (7.2, 8.0)]
    assert rapl.series("rapl:package-0/dram") == [(7.0, 5.0), (7.1, None), (7.2, 9.0)]


def counter_over_time(*readings: tuple[float, float], range_j: float | None = None) -> list[float]:
    channel = Channel("c", "package", "energy_j", range_j)
    info = MeterInfo("m", "m", "measured", 1.0, 1.0, (channel,))
    times_s, joules = [list(column) for column in zip(*readings, strict=True)]
    (power,) = power_over_time(MeterSamples(info, times_s, (joules,)))
    return list(power.watts)


def test_a_counter_that_ran_backwards_a_little_has_no_power_there() -> None:
    powers_w = counter_over_time((0.0, 1.0), (1.0, 3.0), (2.0, 2.5), (3.0, 6.5))
    assert powers_w == [pytest.approx(NAN, nan_ok=True), 2.0, pytest.approx(NAN, nan_ok=True), 4.0]
    assert counter_over_time((0.0, 9.75), (1.0, 0.25), range_j=10.0)[1] == 0.5


def test_readings_of_a_counter_within_half_its_period_are_joined() -> None:
    apart = counter_over_time((0.0, 0.0), (0.5, 5.0), (1.5, 7.0))
    assert apart[1:] == [10.0, 2.0]
    joined = counter_over_time((0.0, 0.0), (0.49, 5.0), (1.0, 7.0), (2.0, 8.0))
    assert joined[1:] == [7.0, 1.0]
