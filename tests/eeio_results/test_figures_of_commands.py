"""J/GB of costs, guidelines, load curves and commands, against the median of the energy of each
window over its bytes, computed here from the records. Other outputs: test_figures_from_raw.py."""

import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eeio.analysis.summary import quartiles
from eeio.errors import EeioError
from eeio.record.run import MEMORY_CACHE, Experiment, Phase
from eeio.record.store import load
from eeio.units.number_text import number
from tests.eeio_results.made import (
    EXPERIMENT,
    MACHINE,
    WRITE,
    design,
    energy,
    phase,
    run,
    written,
)
from tests.eeio_results.made import (
    stored as stored_in,
)
from tests.plugin import InProcess

# Six repetitions, none like another: an even number, so that the median is between two of them.
BYTES = (1_000_000_007, 940_000_001, 1_130_000_003, 870_000_011, 1_020_000_013, 990_000_017)
WATTS = (43.7, 61.3, 39.1, 55.9, 71.7, 47.3)
FLUSHES_S = (1.31, 0.77, 2.93, 1.71, 0.41, 3.37)
READ = replace(EXPERIMENT, cache=replace(EXPERIMENT.cache, buffer="off"))


def per_gb(phases: Sequence[Phase]) -> list[float]:
    """J/GB of each, from the record itself."""
    found = []
    for one in phases:
        readings = one.until_durable.energy if one.until_durable else one.energy
        (system,) = (r for r in readings if r.domain == "system")
        assert system.energy_j is not None and one.bytes_moved is not None
        found.append(1e9 * system.energy_j / one.bytes_moved)
    return found


def writes(scale: float = 1.0) -> list[Phase]:
    """Buffered writes: until durable, each with a power, a time and bytes of its own. The windows
    until the tool returned have another energy."""
    found = []
    for size, watts, flush_s in zip(BYTES, WATTS, FLUSHES_S, strict=True):
        one = written(scale * watts, flush=flush_s)
        assert one.until_durable is not None
        rate = size / one.until_durable.end_s
        durable = replace(one.until_durable, bandwidth_bytes_per_s=rate)
        changed = replace(one, bytes_moved=size, bandwidth_bytes_per_s=size / 2)
        found.append(replace(changed, until_durable=durable))
    return found


def reads() -> list[Phase]:
    return [
        replace(phase(size / 2, (energy(watts), energy(watts / 3, domain="package"))))
        for size, watts in zip(BYTES, WATTS, strict=True)
    ]


def stored(folder: Path, experiments: Sequence[tuple[Experiment, Sequence[Phase]]]) -> str:
    planned = design(folder.name, 6, *(experiment for experiment, _ in experiments))
    orders = tuple(
        replace(
            planned.runs[0], order_index=6 * place + n, repetition=n + 1,
            experiment=planned.experiments[place],
        )
        for place in range(len(experiments)) for n in range(6)
    )  # fmt: skip
    runs = [
        replace(run(6 * place + n, (one,), experiment), repetition=n + 1)
        for place, (experiment, phases) in enumerate(experiments)
        for n, one in enumerate(phases)
    ]
    machine = replace(MACHINE, hostname=folder.name)
    plan = replace(planned, runs=orders)
    return str(stored_in(folder, runs, plan, machine=machine, idle=(energy(20.0),)))


@pytest.fixture
def campaign(tmp_path: Path) -> str:
    return stored(tmp_path / "uneven", [(WRITE, writes()), (READ, reads())])


OutputOf = Any


@pytest.fixture
def output_of(in_process: InProcess) -> OutputOf:
    """What a command prints."""
    return lambda *arguments: in_process(*arguments).out


def spread(joules: Sequence[float], form: Any = number, between: str = " - ") -> tuple[str, str]:
    """J/GB, and MB/J with its quartiles, as a table prints them."""
    of = quartiles(joules)
    assert of is not None and of.median == statistics.median(joules)
    low, high = form(1000 / of.q3), form(1000 / of.q1)
    return form(of.median), f"{form(1000 / of.median)} [{low}{between}{high}]"


ROWS = [("write", writes()), ("read", reads())]


def test_cost_and_guideline(campaign: str, output_of: OutputOf, tmp_path: Path) -> None:
    other = stored(tmp_path / "other", [(WRITE, writes(0.5)), (READ, reads())])
    mix = tmp_path / "mix.yaml"
    for operation, flush, buffer, scale in (("write", ", flush: none", "on", 0.5),
                                            ("read", "", "off", 1.0)):  # fmt: skip
        mix.write_text(
            f"workload:\n  - {{operation: {operation}, spatiality: sequential{flush}, "
            f"request_size_bytes: 4k, cache: {{buffer: {buffer}}}, share: 1}}\n"
        )
        median = statistics.median(per_gb(dict(ROWS)[operation]))
        cost = json.loads(output_of("cost", campaign, "--workload", str(mix), "--format", "json"))
        assert cost["j_per_gb"]["value"] == pytest.approx(median, rel=1e-12)
        assert cost["mix"][0]["j_per_gb"]["value"] == pytest.approx(median, rel=1e-12)
        assert f" {number(median)} [" in output_of("cost", campaign, "--workload", str(mix))
        sides = ["--traditional", campaign, "--low-power", other, "--workload", str(mix)]
        made = json.loads(output_of("guideline", *sides, "--format", "json"))["guideline"]
        first, second = made["per_tb"]
        assert first["j_per_gb"]["value"] == pytest.approx(median, rel=1e-12)
        assert second["j_per_gb"]["value"] == pytest.approx(scale * median, rel=1e-12)
        for form in ("table", "html"):
            shown = output_of("guideline", *sides, "--format", form)
            assert f"{number(median)} [" in shown and "Cost per moved TB" in shown


def test_the_steps_of_a_load_curve(output_of: OutputOf, tmp_path: Path) -> None:
    steps = [
        (
            replace(READ, arguments=(("file_size", "1g"), ("load", str(load)))),
            [
                replace(one, metrics={**one.metrics, "offered_bytes_per_s": float(size // 2)})
                for one, size in zip(reads(), BYTES, strict=True)
            ],
        )
        for load in (50, 100)
    ]
    folder = stored(tmp_path / "load", steps)
    joules, efficiency = spread(per_gb(reads()))
    text = output_of("report", folder)
    curve, _, levels = text.partition("Level: device")
    cells = [re.split("  +", line) for line in curve.splitlines()]
    assert [row[5] for row in cells if row[0].strip() in ("50 %", "100 %")] == [joules] * 2
    assert levels.count(efficiency) == 4
    body = json.loads(output_of("report", folder, "--format", "json"))
    shown = [step["energy_j_per_gb"] for step in body["load_curve"] if step["offered_share"]]
    assert shown == [pytest.approx(statistics.median(per_gb(reads())), rel=1e-12)] * 2


def _command(text: str) -> Experiment:
    return Experiment(
        level="application", tool="command", operation="mixed", spatiality="mixed",
        request_size_bytes=None, cache=EXPERIMENT.cache, flush="none",
        arguments=(("command", f'"{text}"'), ("words", text)),
    )  # fmt: skip


def _executions(phases: Sequence[Phase]) -> list[Phase]:
    metrics = {
        "executions": 2.0, "processor_s": 1.0, "memory_peak_bytes": 1e6, "user_s": 1.0,
        "system_s": 1.0, "asked_bytes": 1e9,
    }  # fmt: skip
    return [
        replace(
            one, name="command", operation="mixed", spatiality="mixed", request_size_bytes=None,
            metrics={**metrics, "bytes_read": 0.0, "bytes_written": float(one.bytes_moved or 0)},
        )
        for one in phases
    ]  # fmt: skip


def test_energy_until_durable_is_not_compared_with_one_that_ends_before(tmp_path: Path) -> None:
    from eeio.comparison import commands
    from eeio.report.document import render_terminal
    from eeio.report.documents import bench

    early = [replace(one, until_durable=None, durable_reason="no flush") for one in writes()]
    each = {"cp a b": writes(), "cp a c": early, "mixed": [*writes()[:5], early[5]]}
    planned = [(_command(text), _executions(phases)) for text, phases in each.items()]
    campaign = load(Path(stored(tmp_path / "bench", planned)))
    durable, returned, mixed = found = commands.benches(campaign)
    assert durable.not_durable is None and returned.not_durable == "no flush"
    assert durable.values("energy_j") != returned.values("energy_j") != ()
    assert "energy ends before its bytes were durable" in returned.missing["efficiency_bytes_per_j"]
    for name in ("energy_j", "power_w", "efficiency_bytes_per_j"):
        assert mixed.missing[name] == "its bytes were not durable in 1 of 6 repetitions: no flush"
    compared = commands.comparisons(found[:2])
    of = {pair.metric: pair for pair in compared}
    assert of["duration_s"].ratio is not None
    assert of["energy_j"].ratio is None and of["energy_j"].verdict == "open"
    assert f"the energy of {returned.label} ends before" in str(of["energy_j"].reason)
    again = commands.comparisons([returned, replace(returned, label="twice")])
    assert next(pair for pair in again if pair.metric == "energy_j").ratio is None
    text = render_terminal(bench.document(campaign, found[:2], compared))
    assert f"not durable: W and J of {returned.label} end when it returned: no flush" in text
    assert text.count("times the energy of") == 0


def test_a_bench_names_caches_below_the_drive(tmp_path: Path) -> None:
    """Bytes from the page cache of an image are not the drive's: no MB/J."""
    from eeio.comparison import commands
    from eeio.report.document import render_terminal
    from eeio.report.documents import bench

    planned = [(_command("cp a b"), _executions(writes()))]
    campaign = load(Path(stored(tmp_path / "bench", planned)))
    text = "through the page cache of the image"
    runs = tuple(replace(one, remarks={MEMORY_CACHE: text}) for one in campaign.runs)
    (found,) = commands.benches(replace(campaign, runs=runs))
    assert found.values("energy_j") and text in found.missing["efficiency_bytes_per_j"]
    assert f"{found.label}: {text}" in render_terminal(bench.document(campaign, [found], []))


def test_a_bench(output_of: OutputOf, tmp_path: Path) -> None:
    command, phases = _command("cp a b"), _executions(writes())
    campaign = load(Path(stored(tmp_path / "bench", [(command, phases)])))
    from eeio.comparison import commands
    from eeio.report.document import render_markdown, render_terminal
    from eeio.report.documents import bench

    found = commands.benches(campaign)
    _, efficiency = spread(per_gb(writes()))
    made = bench.document(campaign, found, [])
    assert efficiency in render_terminal(made)
    assert efficiency in render_markdown(made)
    assert efficiency in output_of("report", str(campaign.folder))
    (one,) = made.data()["commands"]
    of = quartiles(per_gb(writes()))
    assert of is not None
    wanted = {"median": 1e9 / of.median, "q1": 1e9 / of.q3, "q3": 1e9 / of.q1}
    assert one["efficiency_bytes_per_j"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("factor", ["{", "7", "[1]", ""])
def test_a_command_that_is_no_text_is_an_error_of_its_file(tmp_path: Path, factor: str) -> None:
    from eeio.comparison import commands

    campaign = load(Path(__file__).parents[1] / "data/campaigns/bench")
    (first, *others) = campaign.design.experiments
    damaged = replace(first, factors={**first.factors, "command": factor})
    plan = replace(campaign.design, experiments=(damaged, *others))
    with pytest.raises(EeioError, match=r"campaign.json: the factor `command` is neither"):
        commands.benches(replace(campaign, design=plan))
