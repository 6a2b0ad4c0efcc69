"""How short a run may be: what a pilot's whole run proves, and whether a stored proof holds."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.eeio_results.made import EXPERIMENT, MACHINE
from tests.plugin import Eeio
from tests.simulators import FakeRapl
from tests.throttled import throttled_directory

from eeio.comparison.cells import cells_of
from eeio.errors import EeioError
from eeio.measure.campaign import pilot_store, pilots
from eeio.measure.campaign.pilot_store import PilotTask, StoredPilot
from eeio.measure.campaign.pilots import MovedBytes
from eeio.paths import shipped
from eeio.record.design import AdaptiveProtocol, PlannedExperiment
from eeio.record.run import CacheLayers, Phase, Run
from eeio.record.store import load
from eeio_power.monitor import PowerMonitor
from eeio_power.reading import EnergyReading

RULE = AdaptiveProtocol(floor=0.01)
COMPLETE_S = 60.0
READ = replace(EXPERIMENT, arguments=(("file_size", "1g"), ("runtime_s", "60")))
PLANNED = PlannedExperiment(READ, "eeio-fio-1.0.0", {"file_size": "1g", "runtime_s": "60"}, "read")
BYTES_PER_S = 1e8
LENGTHS_S = (10.0, 20.0, 30.0, 45.0)


class Meter(PowerMonitor):
    """Watts by the time since the run began, as a function's mean over the window tells."""

    def __init__(self, mean_w: Callable[[float], float | None]) -> None:
        self._mean_w = mean_w

    def energy(
        self, start_s: float, end_s: float, *, wait: bool = True
    ) -> tuple[EnergyReading, ...]:
        power_w = self._mean_w(end_s - start_s)
        return (
            EnergyReading(
                meter="m", domain="system", kind="measured", power_w=power_w,
                energy_j=None if power_w is None else power_w * (end_s - start_s),
                uncertainty_j=None, coverage=1.0, largest_gap_s=0.1, samples=20, lost=0,
                valid=power_w is not None, reasons=(),
            ),
        )  # fmt: skip


def complete_run(moved_bytes: float = BYTES_PER_S * COMPLETE_S, **changed: Any) -> Run:
    phase = Phase(
        name="read", operation="read", spatiality="sequential", request_size_bytes=4096,
        bytes_moved=int(moved_bytes), bandwidth_bytes_per_s=moved_bytes / COMPLETE_S,
        start_s=1.0, end_s=1.0 + COMPLETE_S, window_source="test",
    )  # fmt: skip
    return replace(
        Run(READ, 0, 0, "paper", "", 100.0, COMPLETE_S + 1.5, 0, (phase,), raw="raw/pilot"),
        **changed,
    )


def moved(rate: Callable[[float], float] = lambda _: BYTES_PER_S) -> MovedBytes:
    """From a second before the run's phase to a second after it."""
    times_s = [100.0 + 0.1 * k for k in range(630)]
    counted, total = [], 5e9
    for time_s in times_s:
        counted.append(int(total))
        if 101.0 <= time_s + 0.05 < 161.0:
            total += 0.1 * rate(time_s - 101.0)
    return MovedBytes(times_s, counted)


def proof(
    run: Run | None = None,
    drive: MovedBytes | None = None,
    mean_w: Callable[[float], float | None] = lambda _: 40.0,
) -> pilots.Proof:
    return pilots.prove_run_time(
        PLANNED, run or complete_run(), drive or moved(), Meter(mean_w), RULE, LENGTHS_S
    )


def test_a_steady_run_may_be_as_short_as_there_is() -> None:
    found = proof()
    assert found.runtime_s == "10" and found.metrics == ("bandwidth", "m system")
    assert "bandwidth and m system of a complete run stayed within 1 %" in found.text


def test_bandwidth_that_settles_late_needs_more() -> None:
    """Twice as fast in the first second: 1/20 too much after 20 s, less the sixtieth that the
    whole run has of it."""
    slower = moved(lambda s: BYTES_PER_S * (1.3 if s < 1.0 else 1.0))
    found = proof(complete_run(BYTES_PER_S * (COMPLETE_S + 0.3)), slower)
    assert found.runtime_s == "20", "1.5 % after 20 s is 1.0 % above the 0.5 % of the whole"


def test_power_counts_too() -> None:
    found = proof(mean_w=lambda s: 40.0 if s > 25 else 41.0)
    assert found.runtime_s == "30"
    drifting = proof(mean_w=lambda s: 40.0 + s / 10)
    assert drifting.runtime_s == "60" and "m system of 45 s is off by -3.3 %" in drifting.text
    assert drifting.metrics, "it was looked at: no need to ask again"


def test_a_length_without_its_power_is_not_proved() -> None:
    assert proof(mean_w=lambda s: 40.0 if s > 15 else None).runtime_s == "20"


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (complete_run(validity=("it failed",)), "unusable: it failed"),
        (complete_run(phases=()), "unusable: it is not one phase"),
        (
            complete_run(BYTES_PER_S * COMPLETE_S * 1.05),
            "its drive moved 6e+09 bytes and the tool 6.3e",
        ),
    ],
)
def test_a_pilot_of_no_use_leaves_the_run_complete_and_is_reported(run: Run, message: str) -> None:
    found = proof(run)
    assert found.runtime_s == "60" and message in found.text and not found.metrics


def test_a_drive_that_was_not_watched_proves_nothing() -> None:
    part = MovedBytes([100.0, 110.0], [0, 10**9])
    assert "not watched for all of the run" in proof(drive=part).text
    alone = pilots.prove_run_time(
        PLANNED, complete_run(), None, Meter(lambda _: 40.0), RULE, LENGTHS_S
    )
    assert alone.runtime_s == "60" and "no drive counters" in alone.text


def test_only_timed_runs_past_the_page_cache_are_cut() -> None:
    buffered = replace(PLANNED, experiment=replace(READ, cache=CacheLayers("on")))
    sized = replace(PLANNED, factors={"file_size": "1g", "runtime_s": "0"})
    assert pilots.lengths_to_try(PLANNED, RULE, 0.0) == LENGTHS_S
    assert pilots.lengths_to_try(PLANNED, RULE, 25.0) == (30.0, 45.0), "the meter's own"
    assert pilots.lengths_to_try(buffered, RULE, 0.0) == ()
    assert pilots.lengths_to_try(sized, RULE, 0.0) == ()
    assert pilots.lengths_to_try(PLANNED, replace(RULE, pilot="none"), 0.0) == ()


def test_a_cut_run_is_another_experiment_that_compares_as_the_complete_one() -> None:
    cut = pilots.with_run_time(PLANNED, "20", "proved")
    assert cut.is_cut and cut.factors["runtime_s"] == "20" and cut.cut_from == "60"
    assert cut.experiment.id != READ.id
    complete = pilots.with_run_time(PLANNED, "60", "no shorter one")
    assert not complete.is_cut and complete.experiment == READ and complete.cut_from == "60"


TASK = PilotTask("length", "eeio-fio-1.0.0", READ, "runtime_s", "60", "paper", 2.0, 0.01, LENGTHS_S)


def stored(**changed: Any) -> StoredPilot:
    made = StoredPilot(
        1, TASK, "20", 1 << 30, "proved", "a", "2026-01-01T00:00:00+00:00", MACHINE,
        {"directory": "drive-1"},
    )  # fmt: skip
    return replace(made, **changed)


def test_a_stored_pilot_answers_on_its_own_machine(home: Path) -> None:
    path = pilot_store.keep(stored())
    assert path.parent == home / "data/eeio/pilots"
    assert pilot_store.best(TASK, MACHINE, {"directory": "drive-1"}) == (stored(), ())
    assert pilot_store.stored("work") == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"machine": replace(MACHINE, kernel="6.2")}, "kernel was 6.1, is 6.2"),
        ({"machine": replace(MACHINE, hostname="other")}, "hostname was board, is other"),
        (
            {"machine": replace(MACHINE, tools=(replace(MACHINE.tools[0], version="fio-4"),))},
            "fio was fio-3.33",
        ),
        ({"disks": {"directory": "drive-2"}}, "directory was drive-1, is drive-2"),
        ({"task": replace(TASK, floor=0.02)}, "the floor was 0.01, is 0.02"),
        ({"task": replace(TASK, meters=("rapl",))}, "the meters was none, is rapl"),
    ],
)
def test_a_pilot_of_another_machine_is_rejected_with_the_reason(
    home: Path, changed: dict[str, Any], message: str
) -> None:
    pilot_store.keep(stored())
    now: dict[str, Any] = {"task": TASK, "machine": MACHINE, "disks": {"directory": "drive-1"}}
    known, why = pilot_store.best(**{**now, **changed})
    assert known is None and any(message in one for one in why), why


def test_a_damaged_pilot_is_reported_and_hides_no_other(home: Path, eeio: Eeio) -> None:
    path = pilot_store.keep(stored())
    path.with_name("length-x-y.json").write_text("{")
    assert len(pilot_store.stored()) == 1 and len(pilot_store.unreadable()) == 1
    done = eeio("list", "--pilots")
    assert "length-x-y.json: no pilot of eeio" in done.stdout
    line = next(line for line in done.stdout.splitlines() if "runtime_s" in line)
    assert "60 -> 20" in line and "not valid here: hostname was board" in line
    body = eeio.json("list", "--pilots")
    assert body["pilots"][0]["found"] == "20" and body["pilots"][0]["holds_here"] is False


@pytest.fixture
def steady(home: Path) -> Iterator[Path]:
    """A directory on a loop device that moves 100 MB/s."""
    with throttled_directory(home, 100_000_000) as mount:
        yield mount


def _suite(home: Path) -> Path:
    """Direct reads and buffered writes of fio, 1 s a run, of which a pilot may leave half."""
    suite = home / "short"
    shutil.copytree(shipped("suites") / "eeio-pavan2018", suite)
    protocol = {
        "repetitions": 3, "settle_s": 0, "idle_s": 0.2, "is_measurement": False, "like": "quick",
        # A wide floor: the disk below the loop device is the machine's own, and others use it.
        "adaptive": {
            "settle_least_s": 0, "settle_most_s": 0.2, "lengths_s": [1],
            "most_repetitions": 3, "most_whole": 3, "floor": 0.3, "indifference": 0.5,
        },
    }  # fmt: skip
    body = {"presets": {"quick": {**protocol, "adaptive": None}, "adaptive": protocol}}
    del body["presets"]["quick"]["like"]
    (suite / "protocol.yaml").write_text(yaml.safe_dump(body))
    definition = suite / "suite-definition.xml"
    head, *entries = definition.read_text().split("  <Execute>")
    chosen = [one for one in entries if "request_size=4m" in one and "sequential" in one]
    definition.write_text(
        "  <Execute>".join([head, *(one.replace("</PhoronixTestSuite>", "") for one in chosen)])
        + "</PhoronixTestSuite>\n"
    )
    return suite


@pytest.mark.slow
@pytest.mark.root
def test_a_campaign_proves_its_run_times_once(home: Path, eeio: Eeio, steady: Path) -> None:
    suite = _suite(home)
    with FakeRapl(home / "powercap", power_w=lambda time_s: 40.0):
        arguments = (
            "run", str(suite), "--preset", "adaptive", "--directory", str(steady),
            "--meter", f"rapl,root={home / 'powercap'}", "--name",
        )  # fmt: skip
        first = eeio(*arguments, "a", code=(0, 3))
        again = eeio(*arguments, "b", code=(0, 3))
    campaigns = [load(home / f"data/eeio/results/{name}") for name in "ab"]
    for campaign in campaigns:
        of = {p.experiment.cache.buffer: p for p in campaign.design.experiments}
        direct = [p for p in campaign.design.experiments if p.experiment.cache.buffer == "off"]
        assert direct and all(p.is_cut and p.cut_from == "2" for p in direct), [
            p.pilot for p in direct
        ]
        assert of["on"].cut_from is None and of["on"].factors["runtime_s"] == "2"
        ran = {dict(run.experiment.arguments)["runtime_s"] for run in campaign.runs
               if run.experiment.cache.buffer == "off"}  # fmt: skip
        assert ran == {"1"}, "all repetitions are cut alike"
        assert all("runtime_s=2" in cell.factors["arguments"] for cell in cells_of(campaign))
    assert "pilot: " in first.stderr and "pilot: " not in again.stderr
    assert "as a pilot of" in again.stderr
    rejected = eeio(*arguments, "c", "--pilot", "stored", "--floor", "20%", code=2)
    assert "the floor was 0.3, is 0.2" in rejected.stderr


def test_means_of_what_moved_are_between_two_counts() -> None:
    bytes_of = MovedBytes([0.0, 1.0, 2.0], [0, 100, 100])
    assert bytes_of.between(0.5, 1.5) == 50.0
    with pytest.raises(EeioError, match="not watched"):
        bytes_of.between(0.5, 2.0)
