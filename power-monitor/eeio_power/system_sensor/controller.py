"""The choice among the sensors of a management controller, with DCMI's power beside them."""

from collections.abc import Mapping

from eeio_power.system_sensor import agreement, sensor_names
from eeio_power.system_sensor.agreement import LEAST_EFFICIENCY
from eeio_power.system_sensor.rules import NAMED, choose
from eeio_power.system_sensor.sensor import Choice
from eeio_power.system_sensor.sensor_names import OF_NODE

DCMI = "the controller's power reading (DCMI)"
_OTHER_SHARE = 0.5
"""Two readings of one machine at nearly the same time differ by less."""


def complete_system(sensors: Mapping[str, float | None]) -> Choice:
    """The sensors of a controller, by name with their values in W, that measure the machine."""
    return choose(sensor_names.of_controller(sensors), "controller")


def against(name: str, sensors: Mapping[str, float | None]) -> str | None:
    """What the other sensors show against one that the user named as the system's."""
    listed = sensor_names.of_controller(sensors)
    system = next((sensor for sensor in listed if sensor.name == name), None)
    if system is None:
        return None
    checked = agreement.checked(Choice(NAMED, (name,)), system, listed)
    return checked.reason or checked.doubt or checked.note


def around_dcmi(dcmi_w: float, sensors: Mapping[str, float | None]) -> Choice:
    """What the sensors show about DCMI's power: no sensors where DCMI is to be read, with its
    contents and the doubt; else the sensor of the node, where DCMI reports its chassis."""
    choice = complete_system(sensors)
    value_w = None
    if len(choice.sensors) == 1:
        value_w = sensors[choice.sensors[0]]
    if choice.contents == OF_NODE:
        return _of_node(choice, value_w, dcmi_w)
    supplies = agreement.of_supplies(sensor_names.of_controller(sensors))
    if (doubt := agreement.standby(dcmi_w, supplies)) is not None:
        return Choice(DCMI, doubt=doubt)
    sum_w, least_w = agreement.of_known(supplies)
    if dcmi_w < least_w:
        doubt = (
            f"the supplies draw {sum_w:g} W and DCMI reports {dcmi_w:g} W: it is assumed to be of "
            "this node in a shared chassis"
        )
        return Choice(DCMI, contents=OF_NODE, doubt=doubt)
    if value_w and value_w < _OTHER_SHARE * dcmi_w:
        doubt = (
            f"{choice.sensors[0]} is {value_w:g} W and DCMI reports {dcmi_w:g} W: it may be of a "
            "shared chassis"
        )
        return Choice(DCMI, doubt=doubt)
    return Choice(DCMI)


def _of_node(choice: Choice, value_w: float | None, dcmi_w: float) -> Choice:
    """DCMI next to a sensor of the node: of the node too if they are alike."""
    if not value_w:
        doubt = f"{choice.sensors[0]} gives no power: DCMI's may be of a shared chassis"
        return Choice(DCMI, doubt=doubt)
    if value_w < LEAST_EFFICIENCY * dcmi_w:
        return choice
    return Choice(DCMI, contents=OF_NODE)
