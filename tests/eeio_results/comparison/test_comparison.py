"""Differences between experiments: which pairs, how large, how sure; on values made by hand."""

import json
import shutil
from collections.abc import ItemsView, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cells import measured
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

from eeio.cli import main
from eeio.comparison import campaigns as comparisons
from eeio.comparison.cells import (
    BANDWIDTH,
    EFFICIENCY,
    P99,
    POWER,
    Cell,
    Measured,
    cells_of,
    machine_names,
    why_too_slow,
)
from eeio.comparison.effects import effects
from eeio.comparison.idle import idle_and_busy
from eeio.comparison.pairing import Index, pairs
from eeio.comparison.remarks import domain_warnings, unmatched
from eeio.record.run import CacheLayers, EnergyReading, Machine, Phase, Run
from eeio.record.store import Campaign
from eeio.report.documents import comparison as report

SYSTEM = POWER["system"]


def cell(values: Sequence[float], **levels: str) -> Cell:
    factors = {
        "machine": "A", "device": "sda", "type": "SSD", "level": "filesystem", "tool": "fio",
        "target": "file", "operation": "read", "spatiality": "sequential", "size": "4 KiB",
        "buffer": "off", "disk": "as found", "api": "posix", "processes": "1", "phase": "read",
        "arguments": "",
    }  # fmt: skip
    return Cell({**factors, **levels}, measured({BANDWIDTH: values}))


def spread(middle: float, n: int = 10) -> list[float]:
    """Distinct values around a median."""
    return [middle * (1 + 0.001 * (place - (n - 1) / 2)) for place in range(n)]


def campaign(
    name: str = "c", machine: Machine = MACHINE, runs: Sequence[Run] = (), idle_w: float = 10.0
) -> Campaign:
    from pathlib import Path

    experiments = list({r.experiment.id: r.experiment for r in runs}.values())
    return Campaign(
        Path(name), design(name, len(runs), *experiments), machine, (energy(idle_w),), None,
        tuple(runs),
    )  # fmt: skip


def test_a_cell_contains_the_valid_repetitions() -> None:
    runs = [
        run(0, (phase(10.0, (energy(2.0),)),)),
        run(1, (phase(20.0, (energy(None, reasons=("broken",)),)),)),
        run(2, (phase(99.0, validity=("clock",)),)),
        run(3, (phase(99.0),), validity=("failed",)),
    ]
    (found,) = cells_of(campaign(runs=runs))
    assert found.values(BANDWIDTH) == (10.0, 20.0)
    assert found.values(SYSTEM) == (2.0,)
    assert found.values(EFFICIENCY) == (5.0,)
    assert found.invalid_runs == 2
    assert found.factors["type"] == "SSD"
    assert (found.factors["size"], found.request_size_bytes) == ("4 KiB", 4096)


def test_a_write_s_cell_is_until_durable_and_reports_how_it_was_flushed() -> None:
    metrics = {"latency_p99_s": 0.004}
    runs = [run(0, (written(metrics=metrics),), WRITE), run(1, (written(durable=False),), WRITE),
            run(2, (written(60.0),), WRITE)]  # fmt: skip
    (found,) = cells_of(campaign(runs=runs))
    assert (found.factors["flush"], found.factors["durable"]) == ("none", "yes")
    assert found.together(BANDWIDTH, SYSTEM) == ([(250e6, 50.0), (250e6, 60.0)], 0)
    assert found.measured[P99] == Measured((0.004,), (0,))
    assert str(found.left_out).startswith("1 of 3 repetitions are left out")
    assert found.invalid_runs == 0
    assert found.label().endswith("buffer on, flush none")
    (open_ended,) = cells_of(campaign(runs=[run(0, (written(durable=False),), WRITE)]))
    assert open_ended.factors["durable"] == "no"
    assert open_ended.label().endswith("flush none, not durable")
    (read,) = cells_of(campaign(runs=[run(0, (phase(1.0),))]))
    assert read.factors["flush"] == read.factors["durable"] == "as found"


def _old() -> Phase:
    return replace(written(), until_durable=None, durable_reason=None)


def test_only_writes_of_the_same_flush_are_joined() -> None:
    each = replace(WRITE, flush="each")
    other = replace(MACHINE, hostname="other")
    for theirs, one in ((each, written()), (WRITE, written(durable=False)),
                        (replace(WRITE, flush=None), _old())):  # fmt: skip
        both = [
            campaign("a", runs=[run(0, (written(),), WRITE)]),
            campaign("b", other, [run(0, (one,), theirs)]),
        ]
        cells = [found for of_one in comparisons.named_cells(both) for found in of_one]
        assert not list(pairs(cells, {"machine": "other"}, {"machine": "board"}))
        compared = comparisons.compare(both, comparisons.named_cells(both))
        assert compared is not None
        assert any("joined only with those of the same flush" in w for w in compared.warnings)
        unknown = any("flush: unknown" in warning for warning in compared.warnings)
        assert unknown == (theirs.flush is None)
    alike = [campaign("a", runs=[run(0, (written(),), WRITE)]),
             campaign("b", other, [run(0, (written(),), WRITE)])]  # fmt: skip
    cells = [found for of_one in comparisons.named_cells(alike) for found in of_one]
    assert len(list(pairs(cells, {"machine": "other"}, {"machine": "board"}))) == 1


def test_a_read_is_compared_with_a_write_of_any_flush() -> None:
    runs = [run(0, (phase(1.0),), replace(EXPERIMENT, cache=WRITE.cache)),
            run(1, (written(),), WRITE)]  # fmt: skip
    cells = cells_of(campaign(runs=runs))
    assert len(list(pairs(cells, {"operation": "write"}, {"operation": "read"}))) == 1


def test_experiments_above_a_latency_are_left_out_with_a_message() -> None:
    slow = replace(WRITE, request_size_bytes=8192)
    silent = replace(WRITE, request_size_bytes=16384)
    runs = [
        run(0, (written(metrics={"latency_p99_s": 0.004}),), WRITE),
        run(1, (written(metrics={"latency_p99_s": 0.006}),), slow),
        run(2, (written(),), silent),
    ]
    made = [campaign(runs=runs)]
    reported = [why_too_slow(found, 0.005) for found in cells_of(made[0])]
    assert reported == [
        None, "its p99 latency is 6 ms, above 5 ms", "its tool reports no p99 latency",
    ]  # fmt: skip
    compared = comparisons.compare(made, comparisons.named_cells(made), max_p99_s=0.005)
    assert compared is not None
    assert sum("left out: its" in warning for warning in compared.warnings) == 2
    assert comparisons.compare(made, comparisons.named_cells(made), max_p99_s=1e-6) is None


def test_bandwidth_and_power_are_paired_by_their_run() -> None:
    """Two runs that lack one each have as many values of both, of different work."""
    runs = [
        run(0, (phase(10.0, (energy(None, reasons=("broken",)),)),)),
        run(1, (replace(phase(1.0, (energy(4.0),)), bandwidth_bytes_per_s=None),)),
        run(2, (phase(30.0, (energy(6.0),)),)),
    ]
    (found,) = cells_of(campaign(runs=runs))
    assert found.n(BANDWIDTH) == found.n(SYSTEM) == 2
    assert found.together(BANDWIDTH, SYSTEM) == ([(30.0, 6.0)], 2)
    assert found.together(BANDWIDTH, POWER["dram"]) == ([], 2)


def test_a_modelled_power_is_never_compared() -> None:
    (found,) = cells_of(campaign(runs=[run(0, (phase(1.0, (energy(5.0, "modelled"),)),))]))
    assert "modelled" in str(found.why(SYSTEM))
    assert "modelled" in str(found.why(EFFICIENCY))


def test_mb_j_of_different_domains_or_without_drives_is_warned_of() -> None:
    def one(name: str, *readings: EnergyReading) -> Cell:
        runs = [run(0, (phase(10.0, readings),))]
        machine = replace(MACHINE, hostname=name)
        (found,) = cells_of(campaign(name, machine, runs), name)
        return found

    complete, module = one("pc", energy(5.0)), one("jetson", energy(4.0, domain="module"))
    assert domain_warnings([complete]) == []
    (text,) = domain_warnings([module])
    assert text == (
        "MB/J is not the storage's, for the drives are not in it: jetson: module without drives"
    )
    (text,) = domain_warnings([complete, module])
    assert text.startswith("MB/J of different power domains are shown together")
    assert text.endswith("pc: system; jetson: module without drives")
    doubted = replace(energy(5.0, reasons=("a and b",)), doubtful=True)
    assert domain_warnings([one("pc", doubted)]) == ["pc: doubtful: a and b"]


def test_a_pair_differs_in_the_named_factor_alone() -> None:
    cells = [
        cell([1], buffer="off"), cell([2], buffer="on"),
        cell([3], buffer="off", size="4 MiB"), cell([4], buffer="on", size="4 MiB"),
        cell([5], buffer="on", size="4 MiB", spatiality="random"),
    ]  # fmt: skip
    found = pairs(cells, {"buffer": "on"}, {"buffer": "off"})
    assert [(a.values(BANDWIDTH), b.values(BANDWIDTH)) for a, b in found] == [
        ((2,), (1,)), ((4,), (3,)),
    ]  # fmt: skip


def test_another_kind_of_drive_is_another_drive() -> None:
    cells = [cell([1], device="hdd1", type="HDD"), cell([2], device="hdd2", type="HDD"),
             cell([3], device="ssd1"), cell([4], device="ssd2")]  # fmt: skip
    assert len(list(pairs(cells, {"type": "SSD"}, {"type": "HDD"}))) == 4


def test_machines_with_drives_of_their_own_are_compared_with_them() -> None:
    cells = [cell([1], machine="A", device="sda"), cell([2], machine="B", device="nvme0n1")]
    assert len(list(pairs(cells, {"machine": "A"}, {"machine": "B"}))) == 1


def test_machines_that_share_drives_are_compared_drive_by_drive() -> None:
    cells = [
        cell([1], machine=machine, device=device)
        for machine in ("A", "B")
        for device in ("d1", "d2")
    ]
    found = list(pairs(cells, {"machine": "A"}, {"machine": "B"}))
    assert [(a.factors["device"], b.factors["device"]) for a, b in found] == [
        ("d1", "d1"), ("d2", "d2"),
    ]  # fmt: skip


@pytest.mark.parametrize(("factor", "levels"), [
    ("buffer", ("on", "off")), ("machine", ("A", "B")), ("machine", ("B", "C")),
    ("type", ("SSD", "HDD")), ("operation", ("read", "write")), ("size", ("4 KiB", "nothing")),
])  # fmt: skip
def test_the_index_finds_the_pairs_that_a_search_finds(
    factor: str, levels: tuple[str, str]
) -> None:
    cells = [
        cell([1], machine=machine, device=device, type=kind, operation=operation, phase=operation,
             buffer=buffer, size=size)
        for machine, device, kind in
            (("A", "d1", "SSD"), ("A", "d2", "HDD"), ("B", "d1", "SSD"), ("C", "d3", "HDD"))
        for operation in ("read", "write")
        for buffer in ("on", "off", "as found")
        for size in ("4 KiB", "4 MiB")
        if (operation, buffer) != ("write", "on") or machine != "B"
    ]  # fmt: skip
    high, low = levels
    found = list(Index(cells).pairs(factor, high, low))
    assert found == list(pairs(cells, {factor: high}, {factor: low}))
    assert bool(found) == (low != "nothing")


def test_what_is_looked_at_grows_with_the_pairs() -> None:
    """All cells were looked at again for each pair of machines and each metric: of forty campaigns
    that took 28 s."""

    class Factors(dict[str, str]):
        looks = 0

        def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
            Factors.looks += 1
            return super().get(key, default)

        def items(self) -> ItemsView[str, str]:  # type: ignore[override]
            Factors.looks += 1
            return super().items()

    def looks(machines: int) -> int:
        cells = [
            cell(spread(100), machine=f"m{number}", size=size)
            for number in range(machines)
            for size in ("4 KiB", "4 MiB")
        ]
        cells = [replace(one, factors=Factors(one.factors)) for one in cells]
        Factors.looks = 0
        effects(cells, metrics=(BANDWIDTH,))
        return Factors.looks

    assert looks(20) <= 2.1 * looks(10)


def test_the_largest_confirmed_difference() -> None:
    cells = [
        cell(spread(100), buffer="off"), cell(spread(150), buffer="on"),
        cell(spread(100), buffer="off", size="4 MiB"), cell(spread(300), buffer="on", size="4 MiB"),
        # The largest of all, but with values that overlap: not confirmed.
        cell([100, 1, 2, 3], buffer="off", size="8 KiB"),
        cell([1000, 0.5, 1.5, 2000], buffer="on", size="8 KiB"),
    ]  # fmt: skip
    found = effects(cells, factors=("buffer",), metrics=(BANDWIDTH,))
    up = next(f for f in found if f.higher == "on")
    assert (up.pairs, up.confirmed) == (3, 2)
    assert up.largest is not None
    assert up.largest.percent == pytest.approx(200.0)
    assert up.largest.higher.factors["size"] == "4 MiB"
    down = next(f for f in found if f.higher == "off")
    assert (down.confirmed, down.largest) == (0, None)


def test_three_repetitions_confirm_nothing_and_it_is_reported() -> None:
    cells = [cell([1, 2, 3], buffer="off"), cell([10, 20, 30], buffer="on")]
    (up, _) = sorted(
        effects(cells, factors=("buffer",), metrics=(BANDWIDTH,)),
        key=lambda f: f.higher != "on",
    )
    assert (up.confirmed, up.too_few) == (0, 1)
    assert "too few repetitions" in report.sentence(up)


def test_more_than_two_levels_are_compared_by_dunn() -> None:
    cells = [cell(spread(v), size=size) for v, size in ((1, "1 KiB"), (2, "2 KiB"), (9, "4 KiB"))]
    found = effects(cells, "none", factors=("size",), metrics=(BANDWIDTH,))
    p = {(f.higher, f.lower): f.largest.p for f in found if f.largest is not None}
    # Mean ranks of three separate groups of ten: 5.5, 15.5, 25.5; neighbours have z = 2.54.
    assert p["2 KiB", "1 KiB"] == pytest.approx(0.0111, abs=1e-4)
    assert p["4 KiB", "1 KiB"] == pytest.approx(3.8e-7, rel=0.05)


def test_more_than_two_machines_are_compared_by_dunn() -> None:
    """Each with a drive of its own; the test once never was Dunn's between campaigns."""
    cells = [
        cell(spread(v), machine=name, device=f"drive of {name}")
        for name, v in (("A", 1), ("B", 2), ("C", 9))
    ]
    found = effects(cells, "none", factors=("machine",), metrics=(BANDWIDTH,))
    p = {(f.higher, f.lower): f.largest.p for f in found if f.largest is not None}
    assert p["B", "A"] == pytest.approx(0.0111, abs=1e-4)
    assert p["C", "A"] == pytest.approx(3.8e-7, rel=0.05)


def test_more_than_two_drives_of_two_types_are_compared_by_dunn() -> None:
    """Ranked with all drives; what is told is of types alone."""
    cells = [
        cell(spread(v), device=name, type=name[:3]) for name, v in
        (("HDD1", 1), ("HDD2", 2), ("SSD1", 9))
    ]  # fmt: skip
    up, down = effects(cells, "none", factors=("type",), metrics=(BANDWIDTH,))
    up, down = (up, down) if up.higher == "SSD" else (down, up)
    assert (up.pairs, up.confirmed, down.confirmed) == (2, 2, 0)
    assert up.largest is not None
    assert up.largest.lower.factors["device"] == "HDD1"
    assert up.largest.p == pytest.approx(3.8e-7, rel=0.05)


def test_machines_that_only_their_own_drives_distinguish_stay_pairs_next_to_dunn() -> None:
    cells = [
        cell(spread(v), machine=name, device=drive)
        for name, v, drive in (("A", 1, "d1"), ("B", 2, "d2"), ("C", 3, "d2"), ("D", 9, "d2"))
    ]
    found = effects(cells, "none", factors=("machine",), metrics=(BANDWIDTH,))
    pairs_of = {(f.higher, f.lower): f.pairs for f in found}
    assert pairs_of["B", "A"] == pairs_of["D", "C"] == 1


def test_a_factor_in_the_papers_sentence() -> None:
    cells = [cell(spread(100e6), buffer="off"), cell(spread(150e6), buffer="on")]
    (up,) = [f for f in effects(cells, metrics=(BANDWIDTH,)) if f.higher == "on"]
    text = report.sentence(up)
    assert text.startswith("Using the buffer cache: bandwidth up to 50 % higher (p = ")
    assert "A sda: sequential read, 4 KiB, 150 against 100 MB/s" in text
    assert text.endswith("confirmed in 1 of 1 pairs.")


def test_what_one_machine_lacks_is_named() -> None:
    cells = [cell([1]), cell([1], size="4 MiB"), cell([1], machine="B", device="sdb")]
    assert unmatched(cells) == [
        "B has no sequential read, 4 MiB, buffer off, filesystem, fio, file"
    ]


def _powers(system: float, package: float, device: float) -> tuple[Phase, ...]:
    readings = (
        energy(system), energy(package, domain="package"), energy(device, domain="device"),
    )  # fmt: skip
    return (phase(1e6, readings),)


def test_where_the_extra_power_goes() -> None:
    small = replace(EXPERIMENT, request_size_bytes=512)
    runs = [
        run(0, _powers(50, 30, 1)),
        replace(run(1, _powers(60, 35, 2), experiment=small), repetition=1),
    ]
    made = replace(
        campaign(runs=runs),
        idle=(energy(20), energy(5, domain="package"), energy(0.5, domain="device")),
    )
    found = {i.domain: i for i in idle_and_busy(made, cells_of(made))}
    assert (found["system"].idle_w, found["system"].busy_w) == (20, 60)
    assert found["package"].extra_w == 30
    assert found["device"].extra_w == 1.5
    # 60 - 35 - 2 over 20 - 5 - 0.5
    assert found["rest"].extra_w == pytest.approx(23 - 14.5)


def test_without_idle_there_is_no_extra_and_it_reports_why() -> None:
    made = replace(campaign(runs=[run(0, _powers(50, 30, 1))]), idle=(), idle_reason="no meter")
    found = idle_and_busy(made, cells_of(made))
    assert [item.extra_w for item in found] == [None] * 4
    assert found[0].reason == "no meter"


def test_two_campaigns_of_one_machine_are_called_by_their_names() -> None:
    other = replace(MACHINE, hostname="other")
    campaigns = [campaign("before"), campaign("after"), campaign("c", other)]
    assert machine_names(campaigns) == ["before", "after", "other"]


def test_a_write_cache_that_was_only_found_keeps_no_experiments_apart() -> None:
    found = [replace(run(0, (phase(1.0),)), disk_cache_found=state) for state in ("on", "off")]
    cells = [cells_of(campaign(runs=[r]))[0] for r in found]
    assert cells[0].factors == cells[1].factors
    requested = replace(EXPERIMENT, cache=CacheLayers("off", "on"))
    (switched,) = cells_of(campaign(runs=[run(0, (phase(1.0),), requested)]))
    assert switched.factors["disk"] == "on"


def test_sizes_that_pilots_found_do_not_keep_two_machines_apart() -> None:
    """Each machine's pilot finds its own; a size that somebody chose is another experiment."""

    def of(name: str, size: str, sized: str | None) -> Cell:
        experiment = replace(EXPERIMENT, arguments=(("file_size", size), ("stride", "17")))
        made = campaign(name, replace(MACHINE, hostname=name), [run(0, (phase(50.0),), experiment)])
        known = [replace(one, sized=sized) for one in made.design.experiments]
        made = replace(made, design=replace(made.design, experiments=tuple(known)))
        (found,) = cells_of(made)
        return found

    piloted = [of("board", "1g", "file_size"), of("pc", "8g", "file_size")]
    assert len(list(pairs(piloted, {"machine": "pc"}, {"machine": "board"}))) == 1
    chosen = [of("board", "1g", None), of("pc", "8g", None)]
    assert not list(pairs(chosen, {"machine": "pc"}, {"machine": "board"}))


def test_the_steps_of_a_load_curve_have_their_load_in_the_label() -> None:
    labels = [cell([1.0], arguments=f"load={load} runtime_s=2").label() for load in (10, 100)]
    assert labels[0].endswith("buffer off, load 10 %") and labels[1].endswith("load 100 %")


def test_load_curves_are_compared_with_a_warning(tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "data/campaigns"
    shutil.copytree(data / "load", tmp_path / "later")
    records = tmp_path / "later/runs.jsonl"  # not a copy: measured later
    records.write_text("".join(reversed(records.read_text().splitlines(keepends=True))))
    load_arguments = [str(data / "load"), str(tmp_path / "later")]
    out = tmp_path / "compared.json"
    assert main(["compare", *load_arguments, "-o", str(out)]) == 0
    warnings = json.loads(out.read_text())["warnings"]
    assert any("a load step is a share of the campaign's own" in one for one in warnings)
    assert main(["cost", load_arguments[0], "--demo", "-o", str(tmp_path / "cost.md")]) == 0
    assert ", load 10 %" in (tmp_path / "cost.md").read_text()
