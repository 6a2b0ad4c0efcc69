"""The repetitions behind each line of the page, shown when a row is opened."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eeio.analysis.metrics import LATENCIES
from eeio.analysis.observation import Key, Observation, known, observed
from eeio.analysis.over_time import PowerSeries
from eeio.record.run import Phase, Run
from eeio.record.store import Campaign
from eeio.report.page.page_data import Page, shortened
from eeio.report.page.series import bandwidth_steps, by_key, power_steps, shown_span
from eeio.units.sizes import MB

Power = Callable[[Campaign], Sequence[PowerSeries]]
"""Returns the power samples of a campaign; none if it stored none."""

_POINTS, _FEWER_POINTS = 120, 24
_MANY_RUNS = 2000
"""Above this, timelines have fewer points, so that the page stays below 8 MB."""


def repetitions(page: Page, power: Power | None) -> list[list[dict[str, Any]]]:
    """A list of repetitions for each line, in the order of the lines."""
    campaigns = page.report.campaigns
    runs = [campaign.runs_by_experiment() for campaign in campaigns]
    series = [by_key(power(campaign)) if power else {} for campaign in campaigns]
    count = sum(len(campaign.runs) for campaign in campaigns)
    points = _POINTS
    if count > _MANY_RUNS:
        points = _FEWER_POINTS
    of_lines = []
    for line in page.lines:
        assert line.row.experiment is not None
        of_line = runs[line.campaign].get(line.row.experiment.id, [])
        folder = campaigns[line.campaign].folder
        bodies = []
        for run in sorted(of_line, key=lambda run: run.repetition):
            phase = next((p for p in run.phases if p.name == line.row.phase), None)
            body = _repetition(page, run, phase)
            if phase is not None:
                of_campaign = series[line.campaign]
                body |= _over_time(page, run, phase, of_campaign, points=points, folder=folder)
            bodies.append(_without_none(body))
        of_lines.append(bodies)
    return of_lines


def _over_time(
    page: Page,
    run: Run,
    phase: Phase,
    series: Mapping[Key, list[PowerSeries]],
    *,
    points: int,
    folder: Path,
) -> dict[str, Any]:
    """The window of a phase, the power and the bandwidth; empty if its times are not known."""
    if phase.start_s is None or phase.end_s is None:
        return {}
    window = (phase.start_s, _end_s(phase))
    steps = _steps(page, run, series, shown_span(*window), points)
    return {
        "window": [round(end_s, 3) for end_s in window],
        "power": steps if any(steps) else None,
        "moved": bandwidth_steps(folder / run.raw, points) or None,
    }


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _end_s(phase: Phase) -> float:
    durable = phase.until_durable
    assert phase.end_s is not None
    if durable is None:
        return phase.end_s
    return max(durable.end_s, phase.end_s)


def _steps(
    page: Page,
    run: Run,
    series: Mapping[Key, list[PowerSeries]],
    span: tuple[float, float],
    points: int,
) -> list[Any]:
    steps = []
    for key in page.keys:
        steps.append(
            power_steps(series[key], run.started_monotonic_s, span, points)
            if key in series
            else None
        )
    return steps


def _repetition(page: Page, run: Run, phase: Phase | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "r": run.repetition,
        "place": run.order_index + 1,
        "utc": run.started_utc[11:19],
        "raw": run.raw,
    }
    bad = [*run.validity, *(phase.validity if phase else ())]
    if phase is None:
        return body | {"bad": bad or ["the tool reported no I/O of this kind"]}
    observation = observed(run.experiment, phase)
    window = observation.window
    latencies = [shortened(_ms(phase, name)) for name in LATENCIES]
    return body | {
        "bad": bad or None,
        "mbs": _in(window.bandwidth_bytes_per_s, MB),
        "s": shortened(window.duration_s),
        "mb": _in(window.bytes_moved, MB),
        "iops": shortened(known(observation.iops)),
        "ms": latencies if any(value is not None for value in latencies) else None,
        "d": [_reading(observation.by(key)) for key in page.keys],
    }


def _ms(phase: Phase, name: str) -> float | None:
    value = phase.metrics.get(f"latency_{name}_s")
    if value is None:
        return None
    return value * 1e3


def _in(value: float | None, unit: float) -> float | None:
    if value is None:
        return None
    return shortened(value / unit)


def _reading(observation: Observation) -> dict[str, Any] | None:
    """A meter's reading in the window; None if it has none."""
    reading = observation.reading
    if reading is None:
        return None
    body = {
        "w": shortened(reading.power_w),
        "j": shortened(reading.energy_j),
        "limit": shortened(reading.uncertainty_j),
        "jgb": shortened(known(observation.j_per_gb)),
        "mbj": _in(known(observation.bytes_per_j), MB),
        "seen": round(reading.coverage, 3),
        "samples": reading.samples,
        "why": list(reading.reasons) or None,
    }
    return {name: value for name, value in body.items() if value is not None}
