"""Calibration against a reference: on simulated pairs of known gain, offset, noise and drift."""

import json
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulators.scripted import ScriptedMeter

from eeio.cli import main
from eeio.errors import EeioError, LimitError
from eeio.measure.calibration import against, steps
from eeio.measure.calibration.fit import fit
from eeio_power import calibration
from eeio_power.calibration import Calibration
from eeio_power.errors import PowerError
from eeio_power.meters import Channel, Meter, open_meters
from eeio_power.now import power_now
from eeio_power.reading import WALL, Contents, EnergyReading, only
from eeio_power.sampler import Sampler
from eeio_power.samples import MeterInfo, MeterSamples, load

METER = Channel(
    "m:package", "package", "power_w", accuracy_relative=0.05, contents=only("processor")
)
REFERENCE = replace(METER, name="r:package", accuracy_relative=0.01, resolution=0.01)
LENGTHS_S = (5.0, 10.0)
EXACT = [(20.0 + 10.0 * k, 23.0 + 11.0 * k) for k in range(6)]
USED = Calibration(
    meter="m", spec="m", domain="package", gain=1.1, offset_w=1.0, limit_w=0.5, limit_relative=0.01,
    least_w=20.0, most_w=70.0, reference="r", kernel="6.1", date="2026-11-24", seed=1,
    steps=((20.0, 23.0),),
)  # fmt: skip


# --- the limit, on simulated truth ----------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A machine from `idle_w` to `busy_w`, a meter, and a reference that is wrong by a share of its
    accuracy class."""

    gain: float
    offset_w: float
    noise: float
    """Standard deviation of each reading of both, as a share of the range of power."""
    drift: float
    """Amplitude of the meter's slow change, as a share of its value."""
    reference_error: float
    idle_w: float
    busy_w: float
    period_s: float
    """Of the drift."""
    seed: int

    def true_w(self, load: steps.Load) -> float:
        return self.idle_w + load.share * (self.busy_w - self.idle_w)

    def samples(
        self, order: Sequence[steps.Load]
    ) -> tuple[MeterSamples, MeterSamples, list[steps.Window]]:
        """Readings of both, one a second."""
        draw = random.Random(self.seed)
        noise_w = self.noise * (self.busy_w - self.idle_w)
        phase = draw.uniform(0.0, 2.0 * math.pi)
        length_s = sum(LENGTHS_S)
        meter_w, reference_w = [], []
        for second in range(round(len(order) * length_s) + 1):
            true_w = self.true_w(order[min(len(order) - 1, max(0, second - 1) // round(length_s))])
            drift = self.drift * math.sin(2.0 * math.pi * second / self.period_s + phase)
            meter_w.append(
                (true_w - self.offset_w) / self.gain * (1.0 + drift) + draw.gauss(0.0, noise_w)
            )
            read_w = true_w * (1.0 + self.reference_error * 0.01) + draw.gauss(0.0, noise_w)
            reference_w.append(round(read_w, 2))
        times_s = [float(second) for second in range(len(meter_w))]
        begins_s = [k * length_s for k in range(len(order))]
        return (
            MeterSamples(MeterInfo("m", "m", "measured", 1.0, 1.0, (METER,)), times_s, (meter_w,)),
            MeterSamples(
                MeterInfo("r", "r", "measured", 1.0, 1.0, (REFERENCE,)), times_s, (reference_w,)
            ),
            [(begin_s + LENGTHS_S[0], begin_s + length_s) for begin_s in begins_s],
        )


PAIRS = st.builds(
    Pair,
    gain=st.floats(0.7, 1.4),
    offset_w=st.floats(-5.0, 10.0),
    noise=st.floats(0.002, 0.06),
    drift=st.floats(0.0, 0.02),
    reference_error=st.floats(-1.0, 1.0),
    idle_w=st.floats(15.0, 60.0),
    busy_w=st.floats(90.0, 250.0),
    period_s=st.floats(60.0, 2000.0),
    seed=st.integers(0, 2**32),
)
METERS = (
    ScriptedMeter([METER], lambda: [0.0], name="m", spec="m"),
    ScriptedMeter([REFERENCE], lambda: [0.0], name="r", spec="r"),
)


def test_the_limit_covers_the_truth_and_is_not_much_larger_than_the_error() -> None:
    errors_w: list[float] = []
    limits_w: list[float] = []
    reasons: list[str] = []

    @settings(max_examples=400, derandomize=True, database=None)
    @given(PAIRS, st.floats(0.0, 1.0))
    def one(pair: Pair, share: float) -> None:
        # The last step is a later measurement, of any load.
        order = [*steps.loads(pair.seed, writes=False), steps.Load(share)]
        meter, reference, windows = pair.samples(order)
        try:
            powers = steps.step_powers((meter, "package"), (reference, "package"), windows[:-1])
            fitted = fit(powers, "m against r")
        except EeioError as error:
            reasons.append(str(error))
            return
        found = steps.calibrated(
            fitted, powers, METERS, "package", step_s=10.0, seed=pair.seed, temperature_c=None
        )
        info = replace(meter.info, calibrations=(found,))
        (reading,) = replace(meter, info=info).energy(*windows[-1])
        if reading.power_w is None or found.remark not in reading.reasons:
            return  # noise beyond the range of the steps
        errors_w.append(abs(reading.power_w - pair.true_w(order[-1])))
        limits_w.append(found.limit_of_w(reading.power_w))
        assert reading.uncertainty_j is not None
        assert reading.uncertainty_j >= limits_w[-1] * 10.0 - 1e-6

    one()
    covered = sum(map(float.__le__, errors_w, limits_w)) / len(errors_w)
    ratio = statistics.median(limits_w) / statistics.median(errors_w)
    print(f"{len(errors_w)} pairs: {covered:.1%} covered, {ratio:.1f}; {len(reasons)} refused")
    assert len(errors_w) >= 250 and len(reasons) < 40, reasons[:5]
    assert covered >= 0.95
    assert ratio <= 10.0


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("powers", "text"),
    [
        (EXACT[:5], "5 usable steps, and 6 are needed"),
        ([(20.0, 23.0)] * 10, "the load does not change the power, 20 W in each step"),
        (
            [(20.0 + 0.1 * (k % 3), 20.0 + 0.2 * ((k * 7) % 5)) for k in range(10)],
            "and 10 % is needed: the load changes the power too little",
        ),
        ([(x, 4.0 * x) for x, _ in EXACT], "the gain is 4, outside 0.5 to 2"),
        ([(x, 0.3 * x) for x, _ in EXACT], "the gain is 0.3, outside 0.5 to 2"),
        ([(x, 100.0 - x) for x, _ in EXACT], "the gain is -1, outside 0.5 to 2"),
        ([(x, x + 0.008 * x * x) for x, _ in EXACT * 2], "their relation is not linear"),
    ],
)
def test_a_line_that_is_not_certain_is_rejected(
    powers: list[tuple[float, float]], text: str
) -> None:
    with pytest.raises(EeioError) as caught:
        fit(powers, "rapl (package) against shelly (system)")
    message = str(caught.value)
    assert message.startswith("rapl (package) against shelly (system): ") and text in message
    assert "\n" not in message


def test_a_line_and_its_interval() -> None:
    """As scipy has them."""
    linregress = pytest.importorskip("scipy.stats").linregress
    student = pytest.importorskip("scipy.stats").t
    draw = random.Random(3)
    powers = [(x, 1.1 * x + 2.0 + draw.gauss(0.0, 0.5)) for x, _ in EXACT * 2]
    line = linregress(*zip(*powers, strict=True))
    found = fit(powers, "")
    assert found.gain == pytest.approx(line.slope) and found.offset_w == pytest.approx(
        line.intercept
    )
    assert found.gain_limit == pytest.approx(student.ppf(0.975, 10) * line.stderr)
    spread_w = math.sqrt(
        sum((y - line.intercept - line.slope * x) ** 2 for x, y in powers) / 10
    )  # fmt: skip
    end_w = 70.0 + 5.0 - statistics.fmean(x for x, _ in powers)
    s_xx = (spread_w / line.stderr) ** 2
    half_w = student.ppf(0.975, 10) * spread_w * math.sqrt(1 + 1 / 12 + end_w**2 / s_xx)
    assert found.limit_w == pytest.approx(half_w)


def test_a_meter_that_failed_in_most_steps_is_named() -> None:
    pair = Pair(1.1, 1.0, 0.01, 0.0, 0.0, 20.0, 80.0, 100.0, 1)
    meter, reference, windows = pair.samples(steps.loads(1, writes=False))
    silent = replace(
        reference, values=([math.nan if t > 70 else w for t, w in enumerate(reference.values[0])],)
    )
    with pytest.raises(
        EeioError, match=r"^4 of 10 steps are usable, and 6 are needed: r: readings cover"
    ):
        steps.step_powers((meter, "package"), (silent, "package"), windows)


def test_which_domains_are_compared() -> None:
    def meter(*parts: tuple[str, Contents]) -> Meter:
        channels = [
            replace(METER, name=domain, domain=domain, contents=contents)  # type: ignore[arg-type]
            for domain, contents in parts
        ]
        return ScriptedMeter(channels, lambda: [0.0] * len(channels))

    package, dram = ("package", only("processor")), ("dram", only("memory"))
    plug = meter(("system", WALL))
    behind = meter(("system", Contents(("processor", "drives"), ("supply",))))
    assert steps.domains(meter(package, dram), meter(dram, package)) == [
        ("package", "package", "the same"),
        ("dram", "dram", "the same"),
    ]
    assert steps.domains(meter(package), plug) == [("package", "system", "more")]
    assert steps.domains(behind, plug) == [("system", "system", "more")]
    assert steps.domains(plug, behind) == [("system", "system", "less")]
    assert steps.domains(plug, meter(package)) == [("system", "package", "less")]


# --- steps ----------------------------------------------------------------------------------------


def test_the_order_is_that_of_the_seed_and_steps_suit_the_slower_meter() -> None:
    order = steps.loads(7, writes=True)
    assert order == steps.loads(7, writes=True) != steps.loads(8, writes=True)
    assert len(order) == 14 and sum(load.writes for load in order) == 4
    slow = replace(METERS[0], native_period_s=6.0)
    assert steps.lengths_s(METERS) == (5.0, 10.0)
    assert steps.lengths_s([METERS[0], slow]) == (18.0, 120.0)


def test_a_step_discards_its_beginning_and_its_load_runs_until_its_end(tmp_path: Path) -> None:
    now_s = [100.0]

    def sleep(length_s: float) -> None:
        now_s[0] += length_s

    ended: list[tuple[float, float]] = []
    order = [steps.Load(0.5), steps.Load(0.5, True), steps.Load(0.0)]
    windows, _ = steps.run(
        order, tmp_path, (5.0, 10.0), lambda a, b: ended.append((a, b)), lambda: now_s[0], sleep
    )
    assert windows == ended == [(105.0, 115.0), (120.0, 130.0), (135.0, 145.0)]
    assert list(tmp_path.iterdir()) == []


def test_a_load_that_fails_is_no_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PowerError, match="does not load the machine"):
        steps.run([steps.Load(1.0, True)], tmp_path / "gone", (0.0, 0.0), lambda a, b: None)
    assert "gone" in capfd.readouterr().err


def test_the_hottest_zone(tmp_path: Path) -> None:
    assert steps.hottest_c(tmp_path) is None
    for name, text in (("thermal_zone0", "41000"), ("thermal_zone1", "52500")):
        (tmp_path / "sys/class/thermal" / name).mkdir(parents=True)
        (tmp_path / "sys/class/thermal" / name / "temp").write_text(text)
    assert steps.hottest_c(tmp_path) == 52.5


# --- readings -------------------------------------------------------------------------------------


def reading(power_w: float, used: Calibration, channel: Channel = METER) -> EnergyReading:
    """Of 10 s of constant power, read once a second."""
    times_s = [float(k) for k in range(21)]
    column = [power_w] * 21
    if channel.quantity == "energy_j":
        column = [power_w * time_s for time_s in times_s]
    info = MeterInfo("m", "m", "measured", 1.0, 1.0, (channel,), (used,))
    (found,) = MeterSamples(info, times_s, (column,)).energy(5.0, 15.0)
    return found


@pytest.mark.parametrize("quantity", ["power_w", "energy_j"])
def test_a_calibrated_reading(quantity: Any) -> None:
    channel = replace(METER, quantity=quantity, resolution=0.0)
    found = reading(40.0, USED, channel)
    assert found.power_w == pytest.approx(45.0) and found.energy_j == pytest.approx(450.0)
    assert found.reasons == (
        "calibrated against r on 2026-11-24: gain 1.1, offset +1 W",
    )  # fmt: skip
    plain = reading(40.0, replace(USED, domain="dram"), channel)
    assert plain.reasons == () and plain.energy_j == pytest.approx(400.0)
    assert found.uncertainty_j is not None and plain.uncertainty_j is not None
    edges_j = math.sqrt(plain.uncertainty_j**2 - (0.05 * 400.0) ** 2)
    assert found.uncertainty_j == pytest.approx(math.hypot((0.5 + 0.45) * 10.0, 1.1 * edges_j))


@pytest.mark.parametrize(
    ("power_w", "used", "message"),
    [
        (14.9, USED, "the power is outside its range from 15 W to 75 W"),
        (75.1, USED, "the power is outside its range from 15 W to 75 W"),
        (40.0, replace(USED, unusable="it is old"), "it is old"),
    ],
)
def test_outside_its_validity_a_reading_is_as_without_it(
    power_w: float, used: Calibration, message: str
) -> None:
    found = reading(power_w, used)
    assert found.reasons == (f"not calibrated: {message} (against r on 2026-11-24)",)
    plain = reading(power_w, replace(USED, domain="dram"))
    assert replace(found, reasons=()) == plain


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user on a machine with an id and kernel 6.1."""
    (home / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(calibration, "_MACHINE_ID", home / "machine-id")
    monkeypatch.setattr("platform.release", lambda: "6.1")
    yield home


def test_a_stored_calibration_is_that_of_its_machine_kernel_and_spec(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert calibration.stored() == []
    calibration.store(USED)
    calibration.store(replace(USED, domain="dram"))
    calibration.store(replace(USED, gain=1.2, temperature_c=(40.0, 60.0)))
    assert {(c.domain, c.gain) for c in calibration.stored()} == {("dram", 1.1), ("package", 1.2)}
    assert "0123456789abcdef" not in calibration.path().read_text()
    assert [c.unusable for c in calibration.of_meter(METERS[0])] == [None, None]
    other = replace(METERS[0], spec="m,root=/x")
    assert [c.unusable for c in calibration.of_meter(other)] == [
        "it is of m, and this meter is m,root=/x"
    ] * 2
    assert calibration.of_meter(METERS[1]) == ()
    monkeypatch.setattr("platform.release", lambda: "6.12")
    assert [c.unusable for c in calibration.stored()] == [
        "it was made with kernel 6.1, this is 6.12"
    ] * 2
    (machine / "machine-id").write_text("f" * 32)
    assert calibration.stored() == [] and calibration.forget("m") == 0
    (machine / "machine-id").unlink()
    with pytest.raises(PowerError, match="no id of this machine"):
        calibration.store(USED)


def test_a_calibration_of_an_unknown_domain_or_without_its_texts_is_rejected() -> None:
    body = json.loads(json.dumps(asdict(USED)))
    assert calibration.read(body) == USED
    for change in ({"domain": "attic"}, {"meter": 7}, {"unusable": 7}):
        with pytest.raises(LimitError):
            calibration.read({**body, **change})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema_version": 9}', '{"schema_version": 1, "machines": {"a": [{}]}}'],
)
def test_a_damaged_file_is_named(machine: Path, text: str) -> None:
    calibration.path().parent.mkdir(parents=True)
    calibration.path().write_text(text)
    with pytest.raises(PowerError, match=r"calibrations\.json: no calibrations .*; remove it"):
        calibration.of_meter(METERS[0])


def test_the_power_now_and_the_samples_file(machine: Path) -> None:
    calibration.store(USED)
    meter = ScriptedMeter([METER], lambda: [40.0], name="m", spec="m")
    (now,) = power_now([meter])
    assert (now.power_w, now.calibration, now.doubts) == (45.0, USED.remark, ())
    (now,) = power_now([meter], 0.0, lambda meter: ())
    assert (now.power_w, now.calibration) == (40.0, None)
    with Sampler([meter], machine / "s.gz") as sampler:
        pass
    assert load(machine / "s.gz").meters[0].info == sampler.samples().meters[0].info
    assert load(machine / "s.gz").meters[0].info.calibrations == (USED,)


# --- the command ----------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def calibrate(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """`eeio meter ...` with meters `m` and `r`, `other` of the system, and steps of 0.1 s."""
    share = [0.0]

    def opened(specs: Sequence[str]) -> list[Meter]:
        scripted = {
            "m": (METER, lambda: 20.0 + 50.0 * share[0]),
            "r": (REFERENCE, lambda: 1.1 * (20.0 + 50.0 * share[0]) + 1.0),
            "rapl": (METER, lambda: 20.0),
            "perf": (METER, lambda: 20.0),
            "flat": (REFERENCE, lambda: 20.0),
            "plug": (
                replace(REFERENCE, domain="system", contents=WALL),
                lambda: 1.2 * (20.0 + 50.0 * share[0]) + 30.0,
            ),
        }
        found: list[Meter] = []
        for spec in specs:
            if spec not in scripted:
                found += open_meters([spec])
                continue
            channel, power_w = scripted[spec]
            found.append(
                ScriptedMeter([channel], lambda power_w=power_w: [power_w()], name=spec, spec=spec)
            )
        return found

    class Loaded:
        def __init__(self, load: steps.Load, directory: Path | None) -> None:
            share[0] = load.share

        def __enter__(self) -> Callable[[], bool]:
            return lambda: True

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(against, "open_meters", opened)
    monkeypatch.setattr(steps, "_loaded", Loaded)
    monkeypatch.setattr(steps, "lengths_s", lambda meters: (0.1, 0.1))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["meter", *arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


def test_calibrate_and_forget(calibrate: Run) -> None:
    code, out, err = calibrate("calibrate", "--meter", "m", "--reference", "r", "--seed", "5")
    assert (code, err) == (0, "10 steps of 0 s, about 1 min; seed 5\n"), err
    assert out.startswith("m package: calibrated against r on 20")
    assert ": gain 1.1, offset +1 W; limit 0.01 W and 1.0%, from " in out
    (found,) = calibration.stored()
    assert (found.gain, found.offset_w) == (pytest.approx(1.1), pytest.approx(1.0, abs=1e-6))
    # A busy machine may make single steps unusable.
    assert (found.seed, found.kernel) == (5, "6.1") and 6 <= len(found.steps) <= 10
    code, out, _ = calibrate("list")
    assert code == 0 and f"m package: {found.remark}" in out
    assert calibrate("calibrate", "--forget", "r")[2] == (
        "eeio: there is no calibration of the meter 'r'; there are: m\n"
    )
    assert calibrate("calibrate", "--forget", "m")[:2] == (0, "m: 1 calibration removed\n")
    assert calibration.stored() == []


def test_a_reference_that_reads_more_is_only_reported(calibrate: Run) -> None:
    code, out, _ = calibrate("calibrate", "--meter", "m", "--reference", "plug")
    assert code == 0 and calibration.stored() == []
    assert out.startswith("m (package) against plug (system): gain 1.2 ± ")
    assert "offset +30 W" in out and out.endswith("Nothing is stored.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--reference", "r"], 2, "name the meter to calibrate with --meter"),
        (["--seed", "1"], 2, "--directory and --seed need --reference"),
        (["--meter", "m", "--reference", "r", "--save", "x"], 2, "leave out --reference"),
        (["--meter", "m", "--reference", "r", "--directory", "/none"], 2, "/none: not a directory"),
        (["--meter", "m", "--reference", "none"], 2, "name one meter each"),
        (["--meter", "m", "--reference", "nix"], 2, "there is no meter 'nix'"),
        (
            ["--meter", "m", "--reference", "modelled"],
            2,
            "it is modelled, and a reference must",
        ),
        (["--meter", "rapl", "--reference", "perf"], 2, "rapl and perf read the same counters"),
        (["--meter", "plug", "--reference", "r"], 2, "does not include all that plug (system)"),
        (["--meter", "m", "--reference", "flat"], 1, "and 10 % is needed"),
    ],
)
def test_calibrate_rejects(calibrate: Run, arguments: list[str], code: int, message: str) -> None:
    done, _, err = calibrate("calibrate", *arguments)
    assert done == code and message in err.splitlines()[-1], err
    assert calibration.stored() == []
