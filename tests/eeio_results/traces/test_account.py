"""Rows of a traced program: their times, bytes and joules add up to the total."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.eeio_results import made

from eeio.record.energy_reading import EnergyReading
from eeio.traces import account
from eeio.traces.account import Row, Writeback, rows_of
from eeio.traces.events import ALL_FILES, Event, find_phases, not_flushed

POWER_W = 20.0


def measured(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
    """A meter that reads 20 W all the time, and nothing of less than 10 ms."""
    if end_s - start_s < 0.01:
        return (made.energy(None, reasons=("too short",)),)
    reading = made.energy(POWER_W)
    joules = POWER_W * (end_s - start_s)
    values = {name: getattr(reading, name) for name in EnergyReading.__dataclass_fields__}
    return (EnergyReading(**{**values, "energy_j": joules, "uncertainty_j": 0.001 * joules}),)


def event(
    operation: str,
    start_s: float,
    took_s: float,
    length: int = 0,
    cached: bool | None = None,
    process: str = "1",
    file: str = "/data/f",
) -> Event:
    return Event(start_s, took_s, process, operation, file, None, length, cached)


def rows(
    events: list[Event], window: tuple[float, float], writeback: Writeback | None = None
) -> dict[str, Row]:
    phases = find_phases(events)
    return {row.name: row for row in rows_of(phases, events, window, measured, writeback)}


def joules(row: Row) -> float:
    (reading,) = row.energy
    assert reading.energy_j is not None, reading.reasons
    return reading.energy_j


WRITE_AND_FSYNC = [
    event("write", 1.0, 0.5, 1000, True), event("write", 1.5, 0.5, 1000, True),
    event("flush", 2.0, 3.0, 0, False),
]  # fmt: skip


def test_phases_and_rest_are_the_total() -> None:
    done = rows(WRITE_AND_FSYNC, (0.0, 6.0))
    assert list(done) == ["1", "2", "rest", "total"]
    assert [done[name].seconds for name in done] == [1.0, 3.0, 2.0, 6.0]
    assert [joules(done[name]) for name in done] == pytest.approx([20.0, 60.0, 40.0, 120.0])
    assert (done["1"].bytes_moved, done["2"].bytes_moved) == (2000, None)
    assert (done["rest"].bytes_moved, done["total"].bytes_moved) == (None, 2000)
    (rest,) = done["rest"].energy
    assert rest.power_w == pytest.approx(POWER_W)
    assert rest.uncertainty_j == pytest.approx(0.001 * (120 + 20 + 60))


def test_bytes_of_the_total_are_flushed_and_those_of_its_writes_are_in_the_page_cache() -> None:
    done = rows(WRITE_AND_FSYNC, (0.0, 6.0))
    assert done["1"].bytes_into_page_cache == 2000
    assert done["total"].bytes_into_page_cache == 0


def test_the_rest_has_no_energy_where_a_phase_has_none() -> None:
    events = [event("write", 1.0, 0.001, 1000, False), event("read", 2.0, 1.0, 1000)]
    done = rows(events, (0.0, 6.0))
    (rest,) = done["rest"].energy
    assert (rest.energy_j, rest.power_w, rest.uncertainty_j, rest.valid) == (
        None, None, None, False,
    )  # fmt: skip
    assert rest.reasons == ("phase 1 has no energy: too short",)
    assert done["rest"].seconds == pytest.approx(4.999)


def test_the_rest_has_no_energy_where_the_phases_have_more_than_the_total() -> None:
    events = [event("read", 1.0, 1.0, 1000)]

    def wrong(start_s: float, end_s: float) -> tuple[EnergyReading, ...]:
        return measured(start_s, start_s + 1.0 / (end_s - start_s))

    rest = rows_of(find_phases(events), events, (0.0, 3.0), wrong)[1]
    assert rest.energy[0].energy_j is None
    assert rest.energy[0].reasons == ("the energy of the phases exceeds that of the total",)


def test_a_moment_of_two_phases_is_in_one_row() -> None:
    events = [event("write", 0.0, 4.0, 1000, True), event("read", 1.0, 1.0, 500, process="2"),
              event("flush", 3.0, 3.0, 0, False, process="3")]  # fmt: skip
    done = rows(events, (0.0, 10.0))
    assert [done[name].seconds for name in done][:5] == [4.0, 0.0, 2.0, 4.0, 10.0]
    assert [done[name].overlap_s for name in "123"] == [0.0, 1.0, 1.0]
    assert done["2"].energy == ()
    assert joules(done["3"]) + joules(done["1"]) + joules(done["rest"]) == pytest.approx(200.0)


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 10.0), st.floats(0.0, 2.0), st.sampled_from("ab"),
            st.sampled_from(["read", "write", "flush", "close"]),
        ),
        min_size=1, max_size=40,
    )
)  # fmt: skip
def test_rows_add_up(calls: list[tuple[float, float, str, str]]) -> None:
    events = [
        event(operation, start_s, took_s, 100 * (operation in ("read", "write")), True, process)
        for start_s, took_s, process, operation in calls
    ]
    done = rows(events, (-1.0, 13.0))
    parts = [row for name, row in done.items() if name.isdigit() or name == account.REST]
    assert sum(row.seconds or 0.0 for row in parts) == pytest.approx(14.0)
    moved = 100 * sum(operation in ("read", "write") for *_, operation in calls)
    assert sum(row.bytes_moved or 0 for row in parts) == done["total"].bytes_moved == moved
    energies = [reading.energy_j for row in parts for reading in row.energy]
    if None not in energies:
        assert sum(value for value in energies if value is not None) == pytest.approx(280.0)


def test_the_writeback_after_the_end_and_the_sum() -> None:
    events = [event("write", 1.0, 1.0, 1000, True)]
    done = rows(events, (0.0, 3.0), Writeback(5.0))
    assert list(done)[2:] == ["total", account.WRITEBACK, account.UNTIL_DURABLE]
    late, durable = done[account.WRITEBACK], done[account.UNTIL_DURABLE]
    assert (late.seconds, late.bytes_moved, durable.seconds) == (2.0, None, 5.0)
    assert joules(done["total"]) + joules(late) == pytest.approx(joules(durable))
    assert (done["total"].bytes_into_page_cache, durable.bytes_into_page_cache) == (1000, 0)


@pytest.mark.parametrize("writeback", [None, Writeback(5.0, "no drive")])
def test_a_writeback_that_is_not_known_has_no_time(writeback: Writeback | None) -> None:
    done = rows([event("write", 1.0, 1.0, 1000, True)], (0.0, 3.0), writeback)
    late = done[account.WRITEBACK]
    assert (late.seconds, late.energy) == (None, ())
    assert late.reason == ("no drive" if writeback else account.NOT_SHOWN)
    assert account.UNTIL_DURABLE not in done


def test_a_program_that_writes_nothing_has_no_writeback() -> None:
    assert list(rows([event("read", 1.0, 1.0, 1000)], (0.0, 3.0))) == ["1", "rest", "total"]


@pytest.mark.parametrize(
    ("events", "left"),
    [
        pytest.param([event("write", 0, 1, 7, True)], (7, 0), id="cached"),
        pytest.param([event("write", 0, 1, 7, False)], (0, 0), id="direct"),
        pytest.param([event("write", 0, 1, 7, None)], (0, 7), id="unknown"),
        pytest.param(WRITE_AND_FSYNC, (0, 0), id="fsync"),
        pytest.param(
            [*WRITE_AND_FSYNC, event("write", 6, 1, 7, True)], (7, 0), id="after-the-fsync"
        ),
        pytest.param(
            [event("write", 0, 2, 7, True), event("flush", 1, 2, 0, False, "2")], (7, 0),
            id="ends-during-the-fsync",
        ),
        pytest.param(
            [event("write", 0, 1, 7, True), event("flush", 1, 1, 0, False, file="/data/g")],
            (7, 0), id="fsync-of-another-file",
        ),
        pytest.param(
            [event("write", 0, 1, 7, None), event("flush", 1, 1, 0, False, file=ALL_FILES)],
            (0, 0), id="sync",
        ),
        pytest.param(
            [event("write", 0, 1, 7, True), event("flush", 1, 1, 0, True)], (7, 0),
            id="sync_file_range",
        ),
    ],
)  # fmt: skip
def test_bytes_that_no_flush_sent_to_the_drive(events: list[Event], left: tuple[int, int]) -> None:
    assert not_flushed(events) == left


# --- phases of flushes


def operations(events: list[Event]) -> list[tuple[str, int, int]]:
    return [(phase.operation, phase.requests, phase.flushes) for phase in find_phases(events)]


def test_a_flush_between_few_writes_is_a_phase() -> None:
    events = [event("write", n, 1, 7, True) for n in range(3)]
    events += [event("flush", 3.0, 0.1, 0, False), event("close", 3.1, 0.1)]
    assert operations(events) == [("write", 3, 0), ("flush", 1, 0), ("close", 1, 0)]
    (write, flush, _) = find_phases(events)
    assert (write.bytes_into_page_cache, flush.bytes_into_page_cache) == (21, 0)
    assert (flush.spatiality, flush.request_size_bytes, flush.largest_bytes) == ("none", None, None)


def test_frequent_short_flushes_are_part_of_their_writes() -> None:
    events = []
    for n in range(20):
        events += [event("write", n * 0.1, 0.05, 7, True), event("flush", n * 0.1 + 0.05, 0.05, 0,
                   False)]  # fmt: skip
    assert operations(events) == [("write", 20, 20)]
    assert find_phases(events)[0].bytes_into_page_cache == 0


def test_a_long_flush_is_a_phase_also_among_frequent_ones() -> None:
    events = []
    start_s = 0.0
    for n in range(20):
        took_s = 2.0 if n == 10 else 0.05
        events += [event("write", start_s, 0.05, 7, True),
                   event("flush", start_s + 0.05, took_s, 0, False)]  # fmt: skip
        start_s += 0.05 + took_s
    assert operations(events) == [("write", 11, 10), ("flush", 1, 0), ("write", 9, 9)]
