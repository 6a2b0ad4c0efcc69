"""Cray's counters and a Raspberry Pi 5's power chip, against trees and a stand-in for vcgencmd."""

import os
from pathlib import Path

import pytest
from tests.eeio_power.one_meter import one_meter
from tests.executables import executable
from tests.simulators.tree import write_tree
from tests.waiting import PATIENCE_S

from eeio_power.errors import PowerError
from eeio_power.meters import cray, discover, open_meters, pmic

# --- cray --------------------------------------------------------------------------------------


def node(root: Path, **changed: int | str) -> Path:
    """Files and units of /sys/cray/pm_counters, as HPE's documentation of EX nodes lists them."""
    stamp = "1700000000000000 us"
    files: dict[str, int | str] = {
        "power": f"245 W {stamp}", "energy": f"9000123 J {stamp}",
        "cpu_power": f"80 W {stamp}", "cpu_energy": f"3000100 J {stamp}",
        "memory_power": f"25 W {stamp}", "memory_energy": f"1000050 J {stamp}",
        "accel0_power": f"90 W {stamp}", "accel0_energy": f"4000000 J {stamp}",
        "power_cap": f"0 W {stamp}", "freshness": 1234, "raw_scan_hz": 10, "version": 2,
        "generation": 1, "startup": 1_600_000_000, **changed,
    }  # fmt: skip
    return write_tree(root / "sys/cray/pm_counters", files)


def test_a_nodes_counters(tmp_path: Path) -> None:
    folder = node(tmp_path)
    meter = one_meter("cray", tmp_path)
    assert [(c.name, c.domain, c.quantity) for c in meter.channels] == [
        ("cray:energy", "system", "energy_j"),
        ("cray:cpu_energy", "package", "energy_j"),
        ("cray:memory_energy", "dram", "energy_j"),
    ], "accelerators are in the node already"
    assert meter.read() == [9000123.0, 3000100.0, 1000050.0]
    assert meter.native_period_s == 0.1
    assert "gpu" in meter.channels[0].contents.includes
    assert meter.channels[0].contents.leaves_out == ("supply",)
    (finding,) = [f for f in discover(tmp_path) if f.spec == "cray"]
    assert (finding.available, finding.domains) == (True, ("system", "package", "dram"))
    write_tree(folder, {"cpu_energy": "rubbish"})
    assert meter.read() == [9000123.0, None, 1000050.0]


def test_a_node_with_powers_only(tmp_path: Path) -> None:
    folder = node(tmp_path)
    for name in ("energy", "cpu_energy", "memory_energy"):
        (folder / name).unlink()
    meter = one_meter("cray", tmp_path)
    assert [c.quantity for c in meter.channels] == ["power_w"] * 3
    assert meter.read() == [245.0, 80.0, 25.0]


def test_counters_that_are_not_fresh_are_missing(tmp_path: Path) -> None:
    folder = node(tmp_path)
    now_s = [100.0]
    meter = cray.open_meter("cray", {}, tmp_path, lambda: now_s[0])
    assert meter.read()[0] == 9000123.0
    now_s[0] += 1.0
    assert meter.read()[0] == 9000123.0
    now_s[0] += 2.0
    with pytest.raises(PowerError, match="freshness does not change from 1234"):
        meter.read()
    write_tree(folder, {"freshness": 1235})
    assert meter.read()[0] == 9000123.0


def test_no_cray(tmp_path: Path) -> None:
    with pytest.raises(PowerError, match=r"pm_counters.*Cray EX"):
        open_meters(["cray"], tmp_path)
    node(tmp_path, power="245 mW", energy="12 kJ")
    with pytest.raises(PowerError, match="neither energy nor power"):
        open_meters(["cray"], tmp_path)


# --- pmic --------------------------------------------------------------------------------------

# A Raspberry Pi 5 Model B Rev 1.0 with four busy cores: the capture in the tests of Zeus
# (ml-energy/zeus), its values.
CURRENTS = {
    "3V7_WL_SW": (0, 0.09368929), "3V3_SYS": (1, 0.08783370), "1V8_SYS": (2, 0.18054710),
    "DDR_VDD2": (3, 0.22543980), "DDR_VDDQ": (4, 0.06666720), "1V1_SYS": (5, 0.17566740),
    "0V8_SW": (6, 0.37670900), "VDD_CORE": (7, 6.22421000), "3V3_DAC": (17, 0.00006105),
    "3V3_ADC": (18, 0.00036630), "0V8_AON": (16, 0.00305250), "HDMI": (22, 0.02417580),
}  # fmt: skip
VOLTAGES = {
    "3V7_WL_SW": (8, 3.69977600), "3V3_SYS": (9, 3.31003300), "1V8_SYS": (10, 1.80512600),
    "DDR_VDD2": (11, 1.10476100), "DDR_VDDQ": (12, 0.60146460), "1V1_SYS": (13, 1.11025500),
    "0V8_SW": (14, 0.80146440), "VDD_CORE": (15, 0.86173300), "3V3_DAC": (20, 3.31318300),
    "3V3_ADC": (21, 3.30677300), "0V8_AON": (19, 0.80029220), "HDMI": (23, 5.08664000),
    "EXT5V": (24, 5.09066000), "BATT": (25, 0.0),
}  # fmt: skip


def adc() -> str:
    lines = [f"{f'{rail}_A':>12} current({n})={a:.8f}A" for rail, (n, a) in CURRENTS.items()]
    lines += [f"{f'{rail}_V':>12} volt({n})={v:.8f}V" for rail, (n, v) in VOLTAGES.items()]
    return "\n".join(lines) + "\n"


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with /dev/vcio; what vcgencmd prints is in `adc`."""
    write_tree(tmp_path, {"dev/vcio": ""})
    (tmp_path / "adc").write_text(adc())
    tool = tmp_path / "bin/vcgencmd"
    executable(tool, f'#!/bin/sh\n[ "$1" = pmic_read_adc ] && cat "{tmp_path / "adc"}"\n')
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(pmic, "ANSWER_S", PATIENCE_S)
    return tmp_path


def test_a_raspberry_pi_5s_rails_are_a_module(board: Path) -> None:
    meter = one_meter("pmic", board)
    truth_w = sum(a * VOLTAGES[rail][1] for rail, (_, a) in CURRENTS.items())
    assert truth_w == pytest.approx(7.2, abs=0.1)
    assert meter.read() == [pytest.approx(truth_w)]
    (channel,) = meter.channels
    assert channel.domain == "module", "USB, NVMe and the fan are fed past the chip"
    assert {"drives", "fans", "supply"} <= set(channel.contents.leaves_out)
    (finding,) = [f for f in discover(board) if f.spec == "pmic"]
    assert finding.available and "without 5 V loads that bypass it" in (finding.reason or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "reports no current: 'nothing'"),
        ("error=1 error_msg=\"Command not registered\"\n", "reports no current"),
        (" VDD_CORE_A current(7)=1.0A\n", "reports no voltage of VDD_CORE"),
        (" VDD_CORE_A current(7)=1.2.3A\n VDD_CORE_V volt(15)=0.8V\n", "pmic_read_adc"),
    ],
)  # fmt: skip
def test_half_an_answer_is_none(board: Path, text: str, message: str) -> None:
    meter = one_meter("pmic", board)
    (board / "adc").write_text(text)
    with pytest.raises(PowerError, match=message):
        meter.read()
    with pytest.raises(PowerError, match="a Raspberry Pi 5's"):
        open_meters(["pmic"], board)


def test_no_board_and_a_tool_that_fails(board: Path, tmp_path: Path) -> None:
    meter = one_meter("pmic", board)
    (board / "adc").unlink()
    with pytest.raises(PowerError, match="vcgencmd failed"):
        meter.read()
    (board / "dev/vcio").unlink()
    with pytest.raises(PowerError, match="only a Raspberry Pi has it"):
        open_meters(["pmic"], board)
    with pytest.raises(PowerError, match="reports no current"):
        pmic.power_w("VDD_CORE_A current(7)=1.0V\n")
