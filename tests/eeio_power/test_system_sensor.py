"""The rules that choose the system's sensor, for sensors of no machine in tests/data/machines."""

import pytest

from eeio_power.system_sensor.controller import complete_system
from eeio_power.system_sensor.rules import LINE, SUPPLY_INPUTS, TOTAL, of_board
from eeio_power.system_sensor.sensor import Choice, Sensor
from eeio_power.system_sensor.sensor_names import role_of, words


def line(label: str, volts: float, power_w: float) -> Sensor:
    """One of a board."""
    role = role_of(label)
    return Sensor(
        f"ina226/{label}", "rail" if role == "unknown" else role, power_w, label, volts=volts
    )


def board(*sensors: Sensor) -> Choice:
    return of_board(sensors).system


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("PMBPWR1", ["pmb", "pwr", "1"]),
        ("CPUpower", ["cpu", "power"]),
        ("PWR_SYSTEM", ["pwr", "system"]),
        ("POWER_USAGE", ["power", "usage"]),
        ("TotalPower", ["total", "power"]),
    ],
)
def test_the_word_for_power_ends_the_one_before_it(name: str, split: list[str]) -> None:
    assert words(name) == split


def test_supplies_are_added_where_the_total_gives_no_reading() -> None:
    choice = complete_system(
        {"Sys Power": None, "PS1 Input Power": 210.0, "PS2 Input Power": 190.0}
    )
    assert (choice.rule, choice.sensors) == (SUPPLY_INPUTS, ("PS1 Input Power", "PS2 Input Power"))
    assert choice.doubt == (
        "Sys Power gives no reading: that the supplies feed one machine is assumed"
    )


def test_supplies_of_a_chassis_are_not_added_for_a_node_without_a_reading() -> None:
    choice = complete_system(
        {"Node Power": None, "PS1 Input Power": 900.0, "PS2 Input Power": 880.0}
    )
    assert choice.sensors == ("Node Power",)


def test_a_total_without_a_reading_stays_where_nothing_else_decides() -> None:
    choice = complete_system({"Sys Power": None, "CPU1 Power": 60.0})
    assert (choice.rule, choice.sensors) == (TOTAL, ("Sys Power",))


def test_two_names_of_the_machine_with_the_same_power_are_one_machine() -> None:
    alike = complete_system({"Chassis Power": 583.0, "System Power": 590.0})
    assert alike.sensors == ("System Power",) and alike.doubt is None
    apart = complete_system({"Chassis Power": 683.0, "System Power": 590.0})
    assert apart.reason == "several may be the system's"


def test_the_line_into_a_board_is_assumed_to_feed_all_of_it() -> None:
    rails = line("VDD_CORE", 0.9, 11.0), line("PCIe", 3.3, 4.0)
    choice = board(line("12V_IN", 12.1, 31.0), *rails)
    assert (choice.rule, choice.sensors) == (LINE, ("ina226/12V_IN",))
    assert choice.doubt is not None and "alone is assumed" in choice.doubt
    assert board(line("MAIN", 19.0, 31.0), *rails).rule == LINE


@pytest.mark.parametrize(
    "sensors",
    [
        # Another line at the voltage of the input may feed the board, too.
        (line("12V_IN", 12.1, 31.0), line("12V_AUX", 12.0, 20.0)),
        # The label contradicts the voltage.
        (line("12V_IN", 48.0, 31.0), line("DDR", 1.2, 4.0)),
        # A rail of that name draws more.
        (line("MAIN", 12.0, 31.0), line("VCC_X", 3.3, 60.0)),
        # A main rail of 3.3 V is not what a board is fed with.
        (line("MAIN", 3.3, 31.0), line("DDR", 1.2, 4.0)),
    ],
)
def test_a_line_that_may_be_one_of_several_is_not_the_system(sensors: tuple[Sensor, ...]) -> None:
    choice = board(*sensors)
    assert choice.sensors == () and choice.reason is not None


def test_a_board_input_is_the_system() -> None:
    choice = board(line("board input", 19.0, 31.0), line("VDD_CORE", 0.9, 11.0))
    assert (choice.rule, choice.sensors, choice.doubt) == (TOTAL, ("ina226/board input",), None)


def test_parts_that_together_draw_more_than_the_system_refuse_it() -> None:
    cpus = {"CPU1 Power": 40.0, "CPU2 Power": 40.0}
    choice = complete_system({"System Power": 62.0, **cpus})
    assert choice.reason == "CPU1 Power and CPU2 Power together are more than System Power"
    assert complete_system({"System Power": 85.0, **cpus}).sensors == ("System Power",)
    supplies = {"PS1 Input Power": 20.0, "PS2 Input Power": 25.0}
    choice = complete_system({**supplies, **cpus})
    assert choice.reason is not None and "more than the sum of the supplies" in choice.reason


def test_two_inputs_with_nearly_the_same_power_may_be_of_one_line() -> None:
    before, behind = line("VIN", 12.0, 10.0), line("VIN", 11.9, 9.8)
    choice = board(before, behind)
    assert choice.doubt is not None and "they may be of one line" in choice.doubt
    assert board(before, line("VIN", 11.9, 4.0)).doubt is None
