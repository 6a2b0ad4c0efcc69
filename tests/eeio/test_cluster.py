"""Several machines: what nodes recorded is added, and what is missing is named."""

import gzip
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.executables import executable

from eeio.errors import RejectedError
from eeio.measure.campaign import server_power
from eeio_power.meters import Channel
from eeio_power.power_of_nodes import (
    Clocks,
    Node,
    NodeRecording,
    add,
    load_nodes,
    local_rank,
    place,
    samples_path,
    window,
)
from eeio_power.reading import EnergyReading
from eeio_power.recording import SCHEMA_VERSION, reading_json
from eeio_power.samples import MeterInfo, MeterSamples, Samples, header_line, sample_lines

GOOD = EnergyReading(
    domain="package", meter="rapl", kind="measured", power_w=100.0, energy_j=1000.0,
    uncertainty_j=30.0, coverage=1.0, largest_gap_s=0.1, samples=100, lost=0, valid=True,
    reasons=(),
)  # fmt: skip
BAD = replace(
    GOOD, power_w=None, energy_j=None, uncertainty_j=None, coverage=0.4, valid=False,
    reasons=("the counter did not change",),
)  # fmt: skip


def node(name: str, *readings: EnergyReading, duration_s: float = 10.0) -> NodeRecording:
    return NodeRecording(name, duration_s, readings)


def test_energies_add_and_errors_add_in_quadrature() -> None:
    other = replace(GOOD, energy_j=500.0, uncertainty_j=40.0, coverage=0.98, largest_gap_s=0.4,
                    lost=2)  # fmt: skip
    (total,) = add([node("a", GOOD), node("b", other)]).readings
    assert (total.energy_j, total.uncertainty_j, total.power_w) == (1500.0, 50.0, 150.0)
    assert (total.coverage, total.largest_gap_s, total.samples, total.lost) == (0.98, 0.4, 200, 2)
    assert total.valid and total.reasons == ()


def test_nodes_that_were_recorded_at_different_times_are_rejected() -> None:
    """A folder that was used before has files of nodes that do not run this time."""
    now_s = 1.7e9
    both = [replace(node("a", GOOD), ended_unix_s=now_s), node("b", GOOD)]
    for later_s in (0.0, 200.0, 309.0):  # no service sets their clocks
        both[1] = replace(both[1], ended_unix_s=now_s + later_s)
        assert add(both).nodes == ("a", "b")
    for later_s in (311.0, 86400.0, -86400.0):
        both[1] = replace(both[1], ended_unix_s=now_s + later_s)
        with pytest.raises(RejectedError, match=r"different times: 20[0-9-]+T.* of one run only"):
            add(both)


def test_a_node_of_clients_counts_for_nothing() -> None:
    """It has a part in the program, and no meter."""
    clients = replace(node("c"), counted=False)
    total = add([node("a", GOOD), node("b", GOOD), clients])
    assert total.nodes == ("a", "b")
    assert total.readings[0].energy_j == 2000.0


def test_an_invalid_or_missing_node_is_named() -> None:
    dram = replace(GOOD, domain="dram")
    package, memory = add([node("a", GOOD, dram), node("b", BAD)]).readings
    assert not package.valid and package.energy_j is None and package.power_w is None
    assert package.reasons == ("b: the counter did not change",)
    assert not memory.valid and memory.energy_j is None and memory.coverage == 0.0
    assert memory.reasons == ("b: no reading of dram",)


def test_kinds_stay_apart_and_meters_of_one_domain_too() -> None:
    system = replace(GOOD, domain="system", meter="ipmi")
    wall = replace(system, meter="wattsup")
    model = replace(system, meter="modelled", kind="modelled")
    total = add([node("a", system, wall), node("b", system, wall), node("c", system, model)])
    reported = {(r.meter, r.kind): r for r in total.readings}
    assert reported["ipmi", "measured"].energy_j == 3000.0
    assert reported["wattsup", "measured"].reasons == ("c: no reading of system",)
    assert not reported["modelled", "modelled"].valid
    # One meter a node, whichever: the nodes' power is that of the machine.
    (one,) = add([node("a", system), node("b", wall)]).readings
    assert (one.meter, one.energy_j) == ("ipmi+wattsup", 2000.0)


def test_windows_that_differ_are_reported() -> None:
    (total,) = add([node("a", GOOD), node("b", GOOD, duration_s=8.0)]).readings
    assert total.power_w == 200.0 and total.valid
    assert total.reasons == ("b was recorded 2.0 s less than the longest",)


def test_a_node_counts_once() -> None:
    with pytest.raises(RejectedError, match="a: more than one recording"):
        add([node("a", GOOD), node("b", GOOD), node("a", GOOD)])


def test_mpirun_knows_better_than_the_batch_script() -> None:
    assert local_rank({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "SLURM_LOCALID": "0"}) == 3
    assert local_rank({"SLURM_LOCALID": "1"}) == 1
    with pytest.raises(RejectedError, match="not started by mpirun or srun"):
        local_rank({})


def test_the_command_line(eeio: Any, rapl: str, tmp_path: Path) -> None:
    sleep = ("--", sys.executable, "-c", "import time; time.sleep(0.5)")
    nodes = tmp_path / "nodes"
    rejected = eeio("meter", "node", "--meter", rapl, str(nodes), *sleep, code=2)
    assert "not started by mpirun or srun" in rejected.stderr
    second = {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    eeio("meter", "node", str(nodes), *sleep, environment=second)
    assert not nodes.exists()
    first = {"OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    late = eeio("meter", "node", str(nodes), "--meter", rapl, *sleep, code=2, environment=first)
    assert "--meter: options come before DIR" in late.stderr and not nodes.exists()
    eeio("meter", "node", "--meter", rapl, str(nodes), *sleep, environment=first)
    (path,) = nodes.glob("*.json")
    one = json.loads(path.read_text())
    assert one["node"] == path.stem
    (nodes / "other.json").write_text(json.dumps({**one, "node": "other"}))
    files = [str(p) for p in sorted(nodes.glob("*.json"))]
    total = eeio.json("meter", "sum", "--nodes", "2", *files)
    assert sorted(total["nodes"]) == sorted(["other", path.stem])
    for reading, alone in zip(total["readings"], one["readings"], strict=True):
        assert math.isclose(reading["energy_j"], 2 * alone["energy_j"])
        assert math.isclose(reading["uncertainty_j"], math.sqrt(2) * alone["uncertainty_j"])
    assert "2 files for 3 nodes" in eeio("meter", "sum", "--nodes", "3", *files, code=2).stderr
    one["readings"][0] |= {"valid": False, "energy_j": None, "reasons": ["it stood still"]}
    (nodes / "other.json").write_text(json.dumps({**one, "node": "other"}))
    assert "other: it stood still" in eeio("meter", "sum", *files, code=3).stdout
    (nodes / "other.json").write_text("{}")
    assert "not output of `eeio meter node`" in eeio("meter", "sum", *files, code=2).stderr


def test_slurm_counts_the_energy_too(eeio: Any, tmp_path: Path) -> None:
    """`sacct` as a script with the output of Slurm's: the step is next to eeio's sum."""
    recording = {
        "schema_version": SCHEMA_VERSION,
        "duration_s": 10.0,
        "readings": [reading_json(GOOD)],
    }
    (tmp_path / "n1.json").write_text(json.dumps(recording))
    sacct = tmp_path / "bin/sacct"
    sacct.parent.mkdir()

    def reported(*lines: str, exit_code: int = 0, job: str = "123") -> dict[str, Any]:
        body = "\n".join(lines)
        executable(sacct, f"#!/bin/sh\ncat <<'E'\n{body}\nE\necho disabled >&2\nexit {exit_code}\n")
        environment = {"SLURM_JOB_ID": job, "PATH": f"{sacct.parent}:/usr/bin:/bin"}
        arguments = ("meter", "sum", str(tmp_path / "n1.json"))
        done = eeio(*arguments, "--format", "json", environment=environment)
        found: dict[str, Any] = json.loads(done.stdout)
        if isinstance(found.get("slurm"), dict) and "energy_j" in found["slurm"]:
            text = eeio(*arguments, environment=environment).stdout
            assert "1040 J in 11 s, step 123.1 by sacct; 1.04 x package" in text
        return found

    steps = ["123|2100|40", "123.batch|2100|40", "123.0|7|1", "123.1|1040|11", "123.10.x|1|1"]
    assert reported(*steps)["slurm"] == {"step": "123.1", "energy_j": 1040, "duration_s": 11}
    for lines, why in (
        (("123|2100|40", "123.batch|2100|40"), "no finished step of job 123"),
        (("123.0|0|10",), "AcctGatherEnergyType"),
        (("123.0|18446744073709551614|10",), "AcctGatherEnergyType"),
        (("123.0||10",), "AcctGatherEnergyType"),
        (("garbage",), "no finished step"),
    ):
        assert why in reported(*lines)["slurm"]["missing"], lines
    assert "disabled" in reported(exit_code=1)["slurm"]["missing"]
    assert "slurm" not in reported(*steps, job="x; rm")


def test_a_node_ends_as_its_program_does(eeio: Any, rapl: str, tmp_path: Path) -> None:
    first = {"SLURM_LOCALID": "0"}
    arguments = ("meter", "node", "--meter", rapl, str(tmp_path / "nodes"), "--")
    eeio(*arguments, sys.executable, "-c", "import sys; sys.exit(7)", environment=first, code=7)
    done = eeio(*arguments, "/nowhere", environment=first, code=2)
    assert "/nowhere: No such file" in done.stderr


# --- a window of a run ----------------------------------------------------------------------------

INFO = MeterInfo(
    name="rapl", spec="rapl", kind="measured", native_period_s=0.001, period_s=0.1,
    channels=(
        Channel(name="package-0", domain="package", quantity="energy_j", accuracy_relative=0.05,
                resolution=1e-6),
    ),
)  # fmt: skip
BEGUN, ENDED = Clocks(1000.0, 50.0), Clocks(1010.0, 60.0)


def sampled(times_s: list[float], power_w: float) -> Samples:
    """A counter of constant power."""
    return Samples((MeterSamples(INFO, times_s, ([power_w * t for t in times_s],)),))


def one_node(name: str, boot_s: float, power_w: float, ahead_s: float = 0.0) -> Node:
    """A node that was switched on another time, and took part from 1000.5 to 1009.5 s."""
    begun, ended = (Clocks(t + ahead_s, t - boot_s) for t in (1000.5, 1009.5))
    times_s = [begun.monotonic_s + n / 10 for n in range(91)]
    return Node(name, sampled(times_s, power_w), begun, ended)


def test_a_phase_is_found_on_each_nodes_clock() -> None:
    nodes = (one_node("a", 300.0, 100.0), one_node("b", 990.0, 60.0))
    (total,) = window(nodes, 52.0, 57.0, BEGUN, ENDED)
    assert (total.domain, total.meter, total.kind) == ("package", "2 nodes: rapl", "measured")
    assert total.valid and math.isclose(total.energy_j or 0.0, 800.0, rel_tol=1e-6)
    assert math.isclose(total.power_w or 0.0, 160.0, rel_tol=1e-6)
    assert total.reasons == (
        "clocks of the nodes taken as one: 0.5 s and more apart would be seen",
    )
    # Before a node's program began nothing was recorded there: no sum of the others.
    (early,) = window(nodes, 50.0, 50.4, BEGUN, ENDED)
    assert not early.valid and early.energy_j is None
    assert any(reason.startswith("b: ") for reason in early.reasons)


def test_clocks_that_disagree_give_no_energy() -> None:
    nodes = (one_node("a", 300.0, 100.0), one_node("b", 990.0, 60.0, ahead_s=3.0))
    with pytest.raises(RejectedError, match=r"b: its clock is 2\.50 s off, or more"):
        window(nodes, 52.0, 57.0, BEGUN, ENDED)
    jumped = one_node("b", 990.0, 60.0)
    jumped = replace(jumped, ended=Clocks(jumped.ended.unix_s - 2.0, jumped.ended.monotonic_s))
    with pytest.raises(RejectedError, match="b: its clock was set during the run"):
        window((jumped,), 52.0, 57.0, BEGUN, ENDED)
    with pytest.raises(RejectedError, match="this machine: its clock was set"):
        window((one_node("a", 1.0, 1.0),), 52.0, 57.0, BEGUN, Clocks(1015.0, 60.0))


def write_node(folder: Path, name: str, ranks: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"node": name, **place(BEGUN, ranks)}))
    lines = header_line([INFO], 50.0, "2026-01-01T00:00:00.000+00:00")
    lines += "".join(sample_lines(50.0 + n / 10, 0, (n * 1.0,)) for n in range(50))
    samples_path(path).write_bytes(gzip.compress(lines.encode()))


@pytest.mark.parametrize(
    ("ranks", "reported"),
    [
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_SIZE": "4"}, "2 of 4 ranks"),
        ({"SLURM_STEP_NUM_NODES": "2"}, "1 of 2 nodes"),
        ({}, r"1 of \? nodes"),
    ],
)
def test_a_node_that_is_missing_is_noticed(
    tmp_path: Path, ranks: dict[str, str], reported: str
) -> None:
    folder = tmp_path / "nodes"
    with pytest.raises(RejectedError, match="no node has written its power"):
        load_nodes(folder)
    write_node(folder, "a", ranks)
    with pytest.raises(RejectedError, match=rf"the power of {reported} is in .* \(a\)"):
        load_nodes(folder)
    if ranks:
        write_node(folder, "b", ranks)
        assert [node.name for node in load_nodes(folder)] == ["a", "b"]
        (folder / "b.csv.gz").unlink()
        with pytest.raises(
            RejectedError, match=r"b\.json: not output of .*cannot read the samples"
        ):
            load_nodes(folder)


def test_when_ranks_may_be_on_other_machines() -> None:
    assert server_power.several({"EEIO_HOSTFILE": "hosts"})
    assert server_power.several({"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"})
    assert not server_power.several({"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"})
    assert not server_power.several({})
