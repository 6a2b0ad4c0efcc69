"""The figures of every stored campaign, computed here from its records with json and numpy alone,
are those of each output. A figure that the records do not give is missing everywhere, never 0."""

import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eeio.exchange.tidy.rows import rows
from eeio.record.store import load
from eeio.units.number_text import number
from tests.plugin import DATA, InProcess

CAMPAIGNS = sorted(path.parent for path in DATA.glob("campaigns/*/campaign.json"))
each_campaign = pytest.mark.parametrize("folder", CAMPAIGNS, ids=lambda path: path.name)

FIGURES = ("power_w", "energy_j", "j_per_gb")
COST_DOMAINS = ("system", "module", "package", "dram", "device")
NAMES = {"power_w": "power_w", "energy_j": "energy_j", "energy_j_per_gb": "j_per_gb",
         "efficiency_bytes_per_j": "bytes_per_j"}  # fmt: skip
"""Figure of the report -> figure of a row."""
Phase = dict[str, Any]


def durable(phase: Phase) -> dict[str, Any] | None:
    """A write until its bytes are on the device, if that is recorded."""
    return phase["until_durable"] if phase["operation"] in ("write", "mixed") else None


def bandwidth(phase: Phase) -> float | None:
    return (durable(phase) or phase)["bandwidth_bytes_per_s"] or None


def energies(phase: Phase) -> list[dict[str, Any]]:
    """The readings over the same time as `bandwidth`."""
    window = durable(phase)
    is_same_time = window is None or abs(window["end_s"] - phase["end_s"]) < 1e-6
    readings: list[dict[str, Any]] = window["energy"] if window else []
    return readings or (phase["energy"] if is_same_time else [])


def reading_figures(run: Phase, phase: Phase, reading: dict[str, Any]) -> dict[str, float | None]:
    power, energy, uncertainty = (reading[k] for k in ("power_w", "energy_j", "uncertainty_j"))
    unknown = energy and uncertainty is not None and uncertainty > 0.5 * abs(energy)
    if not reading["valid"] or (unknown and reading["kind"] != "modelled"):
        return dict.fromkeys(FIGURES)
    is_cost = reading["domain"] in COST_DOMAINS or run["experiment"]["tool"] == "command"
    seen = reading["coverage"] >= 0.5 and power and power > 0
    per_gb = None
    if is_cost and seen and energy is not None and mostly_io(phase):
        if phase["bytes_moved"]:
            per_gb = 1e9 * energy / phase["bytes_moved"]
        elif rate := bandwidth(phase):
            per_gb = 1e9 * power / rate
    return {"power_w": power, "energy_j": energy, "j_per_gb": per_gb}


def mostly_io(phase: Phase) -> bool:
    """Whether its power is that of the I/O: 90 % of its time is."""
    moved, rate, start, end = (
        phase[k] for k in ("bytes_moved", "bandwidth_bytes_per_s", "start_s", "end_s")
    )
    if not moved or not rate or start is None or end is None:
        return True
    lasted = sum(b - a for a, b in phase["stretches"]) if phase["stretches"] else end - start
    window = durable(phase)
    waited = max(0.0, window["end_s"] - end) if window else 0.0
    return bool((moved / rate + waited) / (lasted + waited) >= 0.9)


def summary(values: Iterable[float | None]) -> list[float] | None:
    """Median and quartiles of those that are known."""
    known = [value for value in values if value is not None]
    return [float(np.quantile(known, q)) for q in (0.5, 0.25, 0.75)] if known else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.exp(np.mean(np.log(known)))) if known and min(known) > 0 else None


def inverse(per_gb: list[float] | None) -> list[float] | None:
    """Bytes per J, median and quartiles, of those in J/GB."""
    return None if per_gb is None else [1e9 / per_gb[place] for place in (0, 2, 1)]


class Row:
    """One experiment and one phase, over the valid repetitions of which is known the same."""

    def __init__(self, pairs: Sequence[tuple[Phase, Phase]]) -> None:
        if any(durable(phase) or is_complete(phase) for _, phase in pairs):
            pairs = [pair for pair in pairs if durable(pair[1]) or is_complete(pair[1])]
        self.is_metadata = any(phase["operation"] == "metadata" for _, phase in pairs)
        self.rates = [bandwidth(phase) for _, phase in pairs]
        is_partial = None in self.rates and any(self.rates)
        self.bandwidth = None if is_partial else summary(self.rates)
        self.sources: dict[tuple[str, str, str], dict[str, list[float | None]]] = {}
        for run, phase in pairs:
            for reading in energies(phase):
                key = reading["domain"], reading["meter"], reading["kind"]
                figures = self.sources.setdefault(key, defaultdict(list))
                for name, value in reading_figures(run, phase, reading).items():
                    figures[name].append(None if is_partial and name == "j_per_gb" else value)

    def figures(self, key: tuple[str, str, str]) -> dict[str, list[float] | None]:
        found = {name: summary(values) for name, values in self.sources[key].items()}
        return found | {"bytes_per_j": inverse(found["j_per_gb"])}

    def main(self) -> tuple[str, str, str] | None:
        """The widest domain whose power is measured and may be the cost of the I/O."""
        for domain in COST_DOMAINS:
            for key, values in self.sources.items():
                is_known = any(power is not None for power in values["power_w"])
                if key[0] == domain and key[2] != "modelled" and is_known:
                    return key
        return None

    def of_main(self) -> dict[str, list[float] | None]:
        """The figures of that domain."""
        key = self.main()
        return {} if key is None else {name: self.figures(key)[of] for name, of in NAMES.items()}

    def means(self) -> dict[str, float | None]:
        """Geometric means over the repetitions, which a comparison shows."""
        key = self.main()
        per_gb = None if key is None else geometric_mean(self.sources[key]["j_per_gb"])
        return {
            "bandwidth_bytes_per_s": None if self.bandwidth is None else geometric_mean(self.rates),
            "energy_j_per_gb": per_gb,
            "efficiency_bytes_per_j": None if per_gb is None else 1e9 / per_gb,
        }


def is_complete(phase: Phase) -> bool:
    """Whether it is a write whose tool waited for its bytes."""
    is_write = phase["operation"] in ("write", "mixed")
    return is_write and phase["includes_flush"] and phase["durable_reason"] is None


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def directions(phase: Phase) -> Iterator[Phase]:
    """Of a phase that read and wrote at the same time: bandwidths, neither bytes nor energy."""
    for direction in ("read", "write"):
        rate = phase["metrics"].get(f"{direction}_bandwidth_bytes_per_s")
        if phase["operation"] == "mixed" and rate is not None:
            none = {"power_w": None, "energy_j": None, "uncertainty_j": None, "valid": False}
            yield phase | {
                "name": f"{direction}s", "bytes_moved": None, "bandwidth_bytes_per_s": rate,
                "until_durable": None, "energy": [reading | none for reading in phase["energy"]],
            }  # fmt: skip


def table(folder: Path) -> dict[tuple[str, str], Row]:
    pairs: dict[tuple[str, str], list[tuple[Phase, Phase]]] = defaultdict(list)
    for run in records(folder):
        phases = run["phases"] if run["experiment"]["level"] != "context" else []
        for phase in (*phases, *(of for each in phases for of in directions(each))):
            valid = not run["validity"] and not phase["validity"]
            pairs[run["experiment_id"], phase["name"]] += [(run, phase)] if valid else []
    return {
        key: Row(sorted(found, key=lambda pair: pair[0]["repetition"]))
        for key, found in pairs.items()
    }


def is_same(shown: Any, wanted: list[float] | None) -> bool:
    """Of a median with quartiles as JSON; None only for None."""
    if shown is None or wanted is None:
        return shown is wanted
    return [shown[k] for k in ("median", "q1", "q3")] == pytest.approx(wanted, rel=1e-9)


@each_campaign
def test_the_report(folder: Path, in_process: InProcess) -> None:
    shown = json.loads(in_process("report", str(folder), "--format", "json").out)
    wanted = table(folder)
    by_row = {(r["experiment_id"], r["phase"]): r for r in shown["characterization"] if r["phase"]}
    assert by_row.keys() == wanted.keys()
    for place, row in by_row.items():
        assert is_same(row["bandwidth_bytes_per_s"], wanted[place].bandwidth), place
        domains = {
            (d["power_domain"], d["meter"], d["energy_kind"]): d
            for d in (*row["domains"], *row["estimates"])
        }
        assert domains.keys() == wanted[place].sources.keys()
        for key, figures in domains.items():
            for name, of in NAMES.items():
                assert is_same(figures[name], wanted[place].figures(key)[of]), (place, key, name)
        if row["power_domain"] is None:
            assert all(row[name] is None for name in NAMES)
        else:
            main = row["power_domain"], row["meter"], row["energy_kind"]
            for name, of in NAMES.items():
                assert is_same(row[name], wanted[place].figures(main)[of]), (place, main, name)


@each_campaign
def test_the_csv_file(folder: Path, in_process: InProcess) -> None:
    lines = csv.DictReader(io.StringIO(in_process("report", str(folder), "--format", "csv").out))
    wanted, found = table(folder), set()
    for line in lines:
        if not line["phase"]:
            continue
        place = line["experiment_id"], line["phase"]
        figures = {"bandwidth_bytes_per_s": wanted[place].bandwidth}
        if line["power_domain"]:
            key = line["power_domain"], line["meter"], line["energy_kind"]
            found.add((*place, *key))
            mark = "ESTIMATE_" if line["energy_kind"] == "modelled" else ""
            of = wanted[place].figures(key)
            figures |= {f"{mark}{name}": of[metric] for name, metric in NAMES.items()}
        for name, values in figures.items():
            cells = [line[f"{name}_{part}"] for part in ("median", "q1", "q3")]
            if values is None:
                assert cells == ["", "", ""], (place, name)
            else:
                assert [float(cell) for cell in cells] == pytest.approx(values, rel=1e-9)
    assert found == {(*place, *key) for place, row in wanted.items() for key in row.sources}


@each_campaign
def test_a_comparison(folder: Path, in_process: InProcess, tmp_path: Path) -> None:
    """With itself under another name: each figure before the change is one of the records."""
    other = shutil.copytree(folder, tmp_path / "other")
    body = json.loads((other / "campaign.json").read_text())
    (other / "campaign.json").write_text(json.dumps(body | {"name": "other"}))
    # A file of the same bytes is a copy, which is rejected.
    lines = (json.dumps(run) for run in records(folder))
    (other / "runs.jsonl").write_text("".join(f"{line}\n" for line in lines))
    done = in_process("compare", str(folder), str(other), "--format", "json")
    (change,) = json.loads(done.out)["changes"]
    means = [row.means() for row in table(folder).values()]
    for name in ("bandwidth_bytes_per_s", "energy_j_per_gb", "efficiency_bytes_per_j"):
        shown = [e["metrics"].get(name, {}).get("before") for e in change["experiments"]]
        before = sorted(value for value in shown if value is not None)
        expected = sorted(of_row[name] for of_row in means if of_row[name] is not None)
        assert before == pytest.approx(expected, rel=1e-9), name


@each_campaign
def test_tidy_tables(folder: Path) -> None:
    campaign = load(folder)
    made: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, row in rows(campaign):
        made[name].append(row)
    runs = records(folder)
    phases = [(run, phase) for run in runs for phase in run["phases"]]
    assert len(made["runs"]) == len(runs) and len(made["phases"]) == len(phases)
    sources: dict[tuple[Any, ...], float] = {
        (row["phase_id"], row["domain"], row["meter"], row["name"]): row["value"]
        for row in made["metrics"] if "domain" in row
    }  # fmt: skip
    for shown, (run, phase) in zip(made["phases"], phases, strict=True):
        assert shown["bandwidth_bytes_per_s"] == (durable(phase) or phase)["bandwidth_bytes_per_s"]
        found = {}
        for reading in energies(phase):
            figures = reading_figures(run, phase, reading)
            if _is_unsure(reading) and "j_per_gb" in figures:
                figures["j_per_gb"] = None  # it is compared with no other
            found[reading["domain"], reading["meter"]] = figures
        for (domain, meter), figures in found.items():
            for name, value in figures.items():
                stated = sources.get((shown["phase_id"], domain, meter, name))
                assert stated == (None if value is None else pytest.approx(value, rel=1e-9))
        main = found.get((shown["domain"], shown["meter"]), dict.fromkeys(FIGURES))
        for name, value in main.items():
            assert shown[name] == (None if value is None else pytest.approx(value, rel=1e-9)), name


def _is_unsure(reading: dict[str, Any]) -> bool:
    energy_j, uncertainty_j = reading["energy_j"], reading["uncertainty_j"]
    if reading["doubtful"] or reading["coverage"] < 0.5:
        return True
    return bool(energy_j and uncertainty_j and uncertainty_j > 0.1 * abs(energy_j))


def as_counted(values: Iterable[Sequence[float] | None]) -> Counter[tuple[str, ...]]:
    """As a page writes them: five digits."""
    return Counter(tuple(f"{float(f'{n:.5g}'):.4g}" for n in v) for v in values if v)


@each_campaign
def test_the_page(folder: Path, in_process: InProcess) -> None:
    page = in_process("report", str(folder), "--format", "html").out
    if folder.name == "bench":
        # The page of commands has the columns of `eeio bench`.
        powers = [
            row.figures(key)["power_w"] for row in table(folder).values() for key in row.sources
            if key[0] == "system"
        ]  # fmt: skip
        assert len(powers) == 2
        assert all(power and f"<td>{number(power[0])} [" in page for power in powers)
        return
    found = re.search(r'<script type="application/json" id="\w+">(\{"stamp".+?)</script>', page)
    assert found is not None
    model = json.loads(found[1])
    lines, wanted = model["lines"], table(folder)
    rates = [row.bandwidth and [n / 1e6 for n in row.bandwidth] for row in wanted.values()]
    assert as_counted(line.get("mbs") for line in lines) == as_counted(rates)
    for place, domain in enumerate(model["domains"]):
        for name, of in (("w", "power_w"), ("jgb", "j_per_gb")):
            expected = [
                row.figures(key)[of] for row in wanted.values() for key in row.sources
                if f"{key[0]} ({key[1]})" in domain["label"]
            ]  # fmt: skip
            values = (line["d"][place] for line in lines)
            drawn = as_counted(cell.get(name) for cell in values if cell)
            assert drawn == as_counted(expected), (domain["label"], name)


@each_campaign
def test_a_result_file_of_pts(folder: Path, in_process: InProcess, tmp_path: Path) -> None:
    if folder.name == "bench":
        return  # PTS has no such results
    in_process("export", "pts", str(folder), "-o", str(tmp_path / "pts"))
    wanted: dict[str, list[list[float]]] = defaultdict(list)
    for (_, name), row in table(folder).items():
        if name in ("reads", "writes"):
            continue  # bandwidths of one direction are rows of a report only
        if not row.is_metadata:
            wanted["MB/s"].append([rate / 1e6 for rate in row.rates if rate is not None])
        for (domain, meter, _), values in row.sources.items():
            known = {name: [v for v in of if v is not None] for name, of in values.items()}
            wanted[f"W {domain} {meter}"].append(known["power_w"])
            wanted[f"J {domain} {meter}"].append(known["energy_j"])
            wanted[f"MB/J {domain} {meter}"].append([1000 / v for v in known["j_per_gb"]])
    shown: dict[str, list[list[float]]] = defaultdict(list)
    for result in ET.parse(tmp_path / "pts/composite.xml").getroot().iter("Result"):
        body = json.loads(result.findtext("Data/Entry/JSON") or "{}")["eeio"]
        source = f" {body['domain']} {body['meter']}" if "domain" in body else ""
        if "idle" not in body:
            values_of = (result.findtext("Data/Entry/RawString") or "").split(":")
            shown[f"{result.findtext('Scale')}{source}"].append([float(v) for v in values_of])
    shown.pop("Files/s", None)
    for scale, results in shown.items():
        for trials in results:
            assert any(trials == pytest.approx(of, rel=1e-4) for of in wanted[scale]), scale
    # No experiment is left out.
    assert len(shown["MB/s"]) == sum(map(bool, wanted["MB/s"]))
