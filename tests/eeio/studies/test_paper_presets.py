"""How long the papers' own presets take, by plan."""

from pathlib import Path

import pytest

from eeio.measure.campaign import exclusions, file_sizes
from eeio.measure.campaign import plan as plans
from eeio.measure.profiles import suite as suites
from eeio.record.design import Options

SIX_HOURS_S = 6 * 3600.0


def test_all_of_panadero_passes_in_six_hours_with_both_states_of_the_write_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EEIO_IOR", "/bin/true")
    monkeypatch.setattr(exclusions, "_why_cache_stays", lambda *_: None)
    # Bonnie++ takes a file of twice the memory.
    monkeypatch.setattr(file_sizes, "memory_bytes", lambda root: 16 << 30)
    options = Options(
        suite="eeio-panadero2012", preset="paper", directory=str(home), meters=("none",),
        disk_cache="both", device=None, seed=1,
    )  # fmt: skip
    plan = plans.make(options, suites.find(options.suite))
    of = [one.experiment for one in plan.experiments]
    assert plan.expected_s <= SIX_HOURS_S
    assert {e.spatiality for e in of if e.level == "device"} == {"sequential", "random", "strided"}
    assert {e.cache.disk for e in of if e.operation == "write"} == {"on", "off"}
    (bonnie,) = {p.file_bytes for p in plan.experiments if p.experiment.tool == "bonnie"}
    assert bonnie == 32 << 30
    alone = [e for e in of if e.tool == "ior" and e.processes == 1]
    assert len({e.request_size_bytes for e in alone}) == 10


@pytest.mark.timeout(900)
@pytest.mark.fast_variants(5)
@pytest.mark.parametrize("name", sorted(suites.available()))
def test_profiles_take_what_the_suites_ask_of_them_in_each_preset(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a stride that is longer than the preset's file: each run would be refused."""
    monkeypatch.setenv("EEIO_IOR", "/bin/true")
    monkeypatch.setenv("EEIO_S3_ENDPOINT", "http://127.0.0.1:1")
    suite = suites.find(name)
    for preset in suite.presets:
        options = Options(
            suite=name, preset=preset, directory=str(home), meters=("none",), device=None, seed=1,
            variants=("ext4",) if name == "eeio-chang2014" else (),
        )  # fmt: skip
        plan = plans.make(options, suite)
        for one in plan.experiments:
            profile = plan.profiles[one.profile]
            assert profile.why_not(plan.sizes_preset, one.factors) is None, one.description
