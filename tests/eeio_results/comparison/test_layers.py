"""What a layer costs: which experiments are one layer apart, and by how much."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.eeio_results.made import MACHINE, WRITE, design, energy, run, written

from eeio.comparison.cells import cells_of
from eeio.comparison.layer_costs import layer_costs
from eeio.comparison.layers import (
    DEVICE,
    FILE_SYSTEM,
    HDF5,
    MPI_IO,
    POSIX,
    SHARED,
    Match,
    matches,
    on_one_drive,
)
from eeio.record.run import Experiment, Phase
from eeio.record.store import Campaign
from eeio.report.campaign.characterized import build, to_json
from eeio.report.campaign.contents import document
from eeio.report.document import render_terminal
from eeio.schemas.published import FOLDER as SCHEMAS
from eeio.statistics.bootstrap import difference_interval

FS = replace(WRITE, flush="end")
LIBRARY = replace(FS, level="library", tool="dataserver")
MPI = replace(LIBRARY, api="mpiio")
TWO = replace(MPI, processes=2, arguments=(("file", "shared"), ("file_size", "1g")))


def _of(experiment: Experiment, power_w: float) -> Phase:
    return replace(written(power_w), request_size_bytes=experiment.request_size_bytes)


def _campaign(*experiments: Experiment, repetitions: int = 8, step_w: float = 10.0) -> Campaign:
    """Every experiment takes 4 s and 50 W, and each after the first `step_w` more."""
    runs = [
        run(
            place * repetitions + n,
            (_of(experiment, 50.0 + step_w * place + 0.01 * n),),
            experiment,
        )
        for place, experiment in enumerate(experiments)
        for n in range(repetitions)
    ]
    made = design("c", len(runs), *experiments)
    return Campaign(Path("c"), made, MACHINE, (energy(30.0),), None, tuple(runs))


def _matches(*experiments: Experiment) -> list[Match]:
    return matches(cells_of(_campaign(*experiments, repetitions=1), "c"))


def _layers(*experiments: Experiment) -> list[tuple[str, str]]:
    return [(match.layer, match.below) for match in _matches(*experiments)]


def test_each_layer_meets_the_nearest_below_it() -> None:
    device = replace(FS, level="device", target="device")
    hdf5 = replace(MPI, tool="ior", api="hdf5")
    assert _layers(device, FS, LIBRARY, MPI, TWO, hdf5) == [
        (FILE_SYSTEM, DEVICE), (POSIX, FILE_SYSTEM), (MPI_IO, POSIX), (SHARED, MPI_IO),
        (HDF5, MPI_IO),
    ]  # fmt: skip
    assert _layers(device, MPI) == [(MPI_IO, DEVICE)]


@pytest.mark.parametrize(
    "changed",
    [
        {"request_size_bytes": 8192},
        {"flush": "none"},
        {"flush": None},
        {"level": "device"},
        {"target": "file on xfs"},
        {"arguments": (("iodepth", "32"),)},
        {"tool": "iozone"},
        {"processes": 4},
    ],
)
def test_what_differs_in_more_than_the_layer_is_no_match(changed: dict[str, object]) -> None:
    assert not _layers(replace(FS, **changed), LIBRARY)  # type: ignore[arg-type]


def test_they_stand_from_small_requests_to_large_and_from_the_drive_upwards() -> None:
    made = [replace(e, request_size_bytes=size) for size in (1 << 22, 1 << 12)
            for e in (MPI, LIBRARY, FS)]  # fmt: skip
    found = [(m.upper.request_size_bytes, m.layer) for m in _matches(*made)]
    assert found == [(size, layer) for size in (1 << 12, 1 << 22) for layer in (POSIX, MPI_IO)]


def test_a_file_on_another_drive_has_no_device_below() -> None:
    device = replace(FS, level="device", target="device")
    cells = cells_of(_campaign(device, FS, LIBRARY, repetitions=1), "c")
    found = [(m.layer, m.below) for m in matches(cells, one_drive=False)]
    assert found == [(POSIX, FILE_SYSTEM)]


@pytest.mark.parametrize(
    ("device", "directory", "one"),
    [
        ("Samsung, S3Z, 1000 bytes", "Samsung, S3Z, partition 2, 500 bytes", True),
        ("Samsung, S3Z, 1000 bytes", "Samsung, S4A, partition 2, 500 bytes", False),
        ("1000 bytes", "1000 bytes", True),
        ("1000 bytes", "partition 1, 900 bytes", False),  # no drive tells who it is
        ("Samsung, S3Z, 1000 bytes", None, True),
    ],
)
def test_device_and_directory_are_distinguished(
    device: str, directory: str | None, one: bool
) -> None:
    disks = {"device": device} | ({} if directory is None else {"directory": directory})
    assert on_one_drive(disks) is one


def test_private_files_of_two_processes_are_no_shared_file() -> None:
    private = replace(TWO, arguments=(("file_size", "1g"),))
    assert not _layers(MPI, private)


def test_a_layer_costs_the_difference_of_the_medians_with_its_interval() -> None:
    """10 W more for 4 s a GB are 40 J/GB; the time is the same."""
    (cost,) = layer_costs(matches(cells_of(_campaign(FS, LIBRARY), "c")))
    assert cost.energy_j_per_gb.value == pytest.approx(40)
    interval = cost.energy_j_per_gb.interval
    assert interval is not None and interval.low < 40 < interval.high
    assert cost.seconds_per_gb.value == 0
    assert (cost.n, cost.verdict) == (8, "costs more")
    (less,) = layer_costs(matches(cells_of(_campaign(FS, LIBRARY, step_w=-10.0), "c")))
    assert less.verdict == "costs less"


def test_what_cannot_be_known_is_not_reported() -> None:
    (few,) = layer_costs(matches(cells_of(_campaign(FS, LIBRARY, repetitions=3), "c")))
    assert few.verdict == "too few repetitions" and few.energy_j_per_gb.interval is None
    (same,) = layer_costs(matches(cells_of(_campaign(FS, LIBRARY, step_w=0.001), "c")))
    assert same.verdict == "no difference confirmed"
    runs = [run(n, (written(None),), e) for n, e in enumerate((FS, LIBRARY))]
    made = Campaign(Path("c"), design("c", 2, FS, LIBRARY), MACHINE, (), None, tuple(runs))
    (without,) = layer_costs(matches(cells_of(made, "c")))
    assert without.energy_j_per_gb.value is None and without.seconds_per_gb.value == 0
    assert without.verdict.startswith("energy not compared: no energy of")
    rough = layer_costs(matches(cells_of(_campaign(FS, LIBRARY), "c")), most_uncertain=1e-5)
    assert rough[0].verdict == "the energy is known only to ±0.05 %"


def test_a_write_that_is_not_durable_has_no_layer() -> None:
    runs = [run(n, (written(durable=False),), e) for n, e in enumerate((FS, LIBRARY))]
    made = Campaign(Path("c"), design("c", 2, FS, LIBRARY), MACHINE, (), None, tuple(runs))
    assert not matches(cells_of(made, "c"))


def test_the_report_contains_the_layers() -> None:
    campaign = _campaign(FS, LIBRARY, MPI)
    costs = layer_costs(matches(cells_of(campaign, campaign.name)))
    report = replace(build([campaign]), layers=costs)
    page = render_terminal(document(report))
    assert "Cost per layer" in page and "costs more" in page
    body = json.loads(json.dumps(to_json(report)))
    schema = SCHEMAS / "report.schema.json"
    jsonschema.validate(body, json.loads(schema.read_text()))
    first = body["layers"][0]
    assert first["layer"] == POSIX and first["below"] == FILE_SYSTEM
    assert first["difference_j_per_gb"] == pytest.approx(40) and first["flush"] == "end"


def test_a_difference_of_medians_has_its_interval() -> None:
    found = difference_interval([5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found.value == 4.0 and found.interval is not None
    assert found.interval.low <= 4.0 <= found.interval.high
    assert difference_interval([1.0], [1.0]).interval is None
    assert difference_interval([], [1.0]).value is None
