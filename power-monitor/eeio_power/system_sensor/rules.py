"""The rules by which sensors are chosen as the system's, in their order.

Each rule looks at the sensors of one meter. It chooses those that add up to the system, refuses
with a reason, or leaves the decision to the next one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eeio_power.reading import BEHIND_SUPPLY, Contents
from eeio_power.system_sensor import agreement, sensor_names
from eeio_power.system_sensor.agreement import ALIKE, LARGEST_W, LEAST_EFFICIENCY, LEAST_OF_OUTPUTS
from eeio_power.system_sensor.sensor import Choice, Extent, Sensor

LEAST_INPUT_V = 4.5
"""Below it a voltage is a rail's: boards are fed with 5 V or more."""
_SAME_VOLTS = 1.15
"""An input of 12 V may feed one of 5 V."""

NAMED = "named by the user"
MODULE = "module"
TOTAL = "named as the complete machine"
ACPI = "the only ACPI meter"
SUPPLY_INPUTS = "the inputs of all supplies"
SUPPLY_OUTPUTS = "the outputs of all supplies"
FAMILY = "all sensors of one kind"
LINE = "the line into the board"
ONLY = "the only sensor"
NONE = "no rule"

Rule = Callable[[Sequence[Sensor], Extent], Choice | None]


def choose(sensors: Sequence[Sensor], extent: Extent) -> Choice:
    """The sensors that add up to the system, by the first rule that decides."""
    for rule in RULES:
        choice = rule(sensors, extent)
        if choice is not None:
            return choice
    return _refused(sensors, extent)


@dataclass(frozen=True)
class BoardChoice:
    """The sensors of a board: those of its modules, and those of the system."""

    modules: Choice
    system: Choice

    @property
    def sensors(self) -> tuple[str, ...]:
        return (*self.modules.sensors, *self.system.sensors)

    @property
    def refused(self) -> Choice | None:
        """What decided that none can be used; None if some can."""
        if self.modules.reason is not None:
            return self.modules
        if self.sensors:
            return None
        return self.system

    def text(self, sensors: Sequence[Sensor]) -> str:
        """Which rules chose which sensors, and which are not counted."""
        chosen = [choice for choice in (self.modules, self.system) if choice.sensors]
        listed = [s.name for s in sensors if s.name not in self.sensors]
        texts = [choice.text(choice.sensors) for choice in chosen[:-1]]
        return "; ".join([*texts, *(choice.text(listed) for choice in chosen[-1:])])


def of_board(sensors: Sequence[Sensor]) -> BoardChoice:
    """The choice among the sensors of a board."""
    others = [sensor for sensor in sensors if sensor.role != "module"]
    return BoardChoice(modules(sensors), choose(others, "board"))


def modules(sensors: Sequence[Sensor]) -> Choice:
    """The sensors that add up to all modules of a board; none, with a reason, if one may lack."""
    of_modules = [s for s in sensors if s.role == "module" and s.may_add]
    kinds = {sensor_names.key(s.label) for s in of_modules}
    if len(kinds) > 1:
        return Choice(MODULE, reason="several may contain each other")
    units, all_units = (
        {s.unit for s in some if s.unit and "socket" in sensor_names.words(s.label)}
        for some in (of_modules, sensors)
    )
    if units and units != all_units:
        return Choice(MODULE, reason="a module has no sensor of its own")
    return Choice(MODULE, tuple(s.name for s in of_modules))


def _board_inputs(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """Several inputs of a board, with only words for its input."""
    inputs = _named_totals(sensors)
    if not _are_inputs_of_a_board(inputs):
        return None
    sum_of = replace(inputs[0], power_w=_sum_w(inputs))
    choice = replace(_chosen(TOTAL, inputs), doubt=_in_series(inputs))
    return agreement.checked(choice, sum_of, _without(sensors, inputs), extent)


def _in_series(inputs: Sequence[Sensor]) -> str | None:
    """A doubt for two inputs with nearly the same power: they may be of one line, before and behind
    a fuse."""
    low, *_, high = sorted(inputs, key=lambda sensor: sensor.power_w or 0.0)
    if not high.power_w or (low.power_w or 0.0) * ALIKE < high.power_w:
        return None
    return f"{low.name} and {high.name} have nearly the same power: they may be of one line"


def _total(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """The one sensor with only words for the complete machine; of several, the one total."""
    likely = _named_totals(sensors)
    if not likely or (extent == "controller" and all(s.power_w is None for s in likely)):
        return None
    system = _one_total(likely, extent)
    if system is None:
        return Choice(TOTAL, reason="several may be the system's")
    reason = _larger_name(system, likely) or _one_of_several(system, sensors, extent)
    if reason is not None:
        return Choice(TOTAL, reason=reason)
    return agreement.checked(_chosen(TOTAL, [system]), system, sensors, extent)


def _one_total(likely: Sequence[Sensor], extent: Extent) -> Sensor | None:
    """The only one, the only total, or one of several of a controller that are alike."""
    totals = [s for s in likely if sensor_names.is_total(s.label)]
    if len(likely) == 1 or len(totals) == 1:
        return (totals or likely)[0]
    powers_w = [s.power_w or 0.0 for s in likely]
    if extent == "board" or not 0.0 < max(powers_w) <= ALIKE * min(powers_w):
        return None
    return min(likely, key=lambda sensor: sensor_names.is_chassis(sensor.label))


def _silent_total(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """A sensor of the complete machine without a reading, where no other rule decided."""
    likely = _named_totals(sensors)
    if extent == "controller" and len(likely) == 1:
        return _chosen(TOTAL, likely)
    return None


def _larger_name(system: Sensor, likely: Sequence[Sensor]) -> str | None:
    """Another name of the machine with more power: a total is not below it."""
    if system.power_w is None:
        return None
    larger = agreement.larger_than(system.power_w, _without(likely, [system]), "controller")
    if larger is None:
        return None
    return f"{larger.name} is more than {system.name}"


def _one_of_several(system: Sensor, sensors: Sequence[Sensor], extent: Extent) -> str | None:
    """Others of its name with numbers, of which it is not the sum."""
    twins = [s for s in sensors if s.kind == system.kind and s != system]
    if extent == "board" or not twins or _are_summed(system, twins):
        return None
    return f"{system.name} may be one of several ({', '.join(s.name for s in twins)})"


def _named_totals(sensors: Sequence[Sensor]) -> list[Sensor]:
    """Sensors with only words for the complete machine. IBM's only one averages; next to another
    one, that one is the present power."""
    likely = [s for s in sensors if s.role == "total" and s.label and s.may_add and not _is_rail(s)]
    return [s for s in likely if not sensor_names.averages(s.label)] or likely


def _are_summed(system: Sensor, twins: Sequence[Sensor]) -> bool:
    """Whether a sensor is the sum of others of its name with numbers."""
    sum_w = _sum_w(twins)
    return sum_w / ALIKE <= (system.power_w or 0.0) <= ALIKE * sum_w


def _are_inputs_of_a_board(sensors: Sequence[Sensor]) -> bool:
    """Several inputs add up if they are at one voltage: one of 12 V may feed one of 5 V."""
    volts = [s.volts for s in sensors if s.volts is not None]
    return (
        len(sensors) > 1
        and all(sensor_names.is_direct_input(s.label) for s in sensors)
        and len({sensor_names.key(s.label) for s in sensors}) == 1
        and max(volts, default=0.0) <= _SAME_VOLTS * min(volts, default=0.0)
    )


def _acpi(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """An ACPI meter of the machine. Next to others, it may measure a part, as they do."""
    meters = [s for s in sensors if s.is_meter]
    of_machine = [s for s in meters if s.domain == "system"]
    if not of_machine:
        return None
    if len(meters) > 1:
        return Choice(ACPI, reason="several may contain each other")
    others = [s for s in sensors if s not in meters]
    return agreement.checked(_chosen(ACPI, of_machine), of_machine[0], others, extent)


def _several_machines(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    supplies = agreement.of_supplies(sensors)
    machines = []
    for s in sensors:
        if s not in supplies and sensor_names.is_machine(s.label) and sensor_names.number(s.label):
            machines.append(s.name)
    if not supplies or not machines:
        return None
    listed = ", ".join(machines)
    return Choice(SUPPLY_INPUTS, reason=f"the supplies may feed several machines ({listed})")


def _supplies(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """The inputs of all supplies, else the outputs of all."""
    supplies = agreement.of_supplies(sensors)
    if not any(s.may_add for s in supplies):
        return None
    silent = []
    if extent != "board":
        silent = _named_totals(sensors)
    if any(sensor_names.is_node(sensor.label) for sensor in silent):
        return None
    choice = added(sensors, supplies, extent)
    if choice.reason is not None and silent:
        return None
    if silent:
        assumed = (
            f"{silent[0].name} gives no reading: that the supplies feed one machine is assumed"
        )
        choice = replace(choice, doubt=assumed)
    largest = [s.name for s in supplies if s.name in choice.sensors and s.power_w == LARGEST_W]
    if largest:
        return Choice(choice.rule, reason=f"{largest[0]} is {LARGEST_W:g} W, its largest number")
    return choice


def added(sensors: Sequence[Sensor], summands: Sequence[Sensor], extent: Extent) -> Choice:
    """The sum of one sensor of each unit: of the inputs, if all units have one, else of the
    outputs. Next to numbered ones, a name without a number is their total."""
    numbered = [s for s in summands if s.unit] or list(summands)
    totals = _without(summands, numbered)
    outputs = [s for s in numbered if s.role == "output"]
    usable = _inputs_or_outputs(numbered, outputs)
    rule = SUPPLY_INPUTS
    if usable is outputs:
        rule = SUPPLY_OUTPUTS
    reason = _incomplete(usable, {s.unit for s in numbered}, extent)
    if reason is None and all(s.power_w is not None for s in usable):
        more = agreement.exceeding(_sum_w(usable), _without(sensors, summands), extent)
        reason = _contradicted(usable, outputs, totals, more)
    if reason is not None:
        return Choice(rule, reason=reason)
    return _chosen(rule, usable, BEHIND_SUPPLY if usable is outputs else usable[0].contents)


def _inputs_or_outputs(numbered: Sequence[Sensor], outputs: list[Sensor]) -> list[Sensor]:
    """The outputs where there is no input, or where only they are known of each unit."""
    inputs = _without(numbered, outputs)
    only_outputs_are_complete = {s.unit for s in inputs} < {s.unit for s in outputs}
    if only_outputs_are_complete or not inputs:
        return outputs
    return inputs


def _contradicted(
    usable: Sequence[Sensor],
    outputs: Sequence[Sensor],
    totals: Sequence[Sensor],
    more: str | None,
) -> str | None:
    """What outputs, totals or other sensors say against the sum of supplies."""
    sum_w = _sum_w(usable)
    given_w, _ = agreement.of_known(outputs)
    if usable is not outputs and given_w * LEAST_OF_OUTPUTS > sum_w:
        return f"the supplies draw {sum_w:g} W and give {given_w:g} W"
    for total in totals:
        if total.power_w is None or LEAST_EFFICIENCY * sum_w <= total.power_w <= ALIKE * sum_w:
            continue
        return f"{total.name} is {total.power_w:g} W and the numbered supplies are {sum_w:g} W"
    if more is None:
        return None
    return f"{more} more than the sum of the supplies"


def _incomplete(usable: Sequence[Sensor], units: set[str], extent: Extent) -> str | None:
    """Why a sum of these would not be all supplies; None if it is."""
    if extent == "controller" and (reason := _unlisted(usable, units)) is not None:
        return reason
    if {s.unit for s in usable} != units:
        return "not every supply has the same sensor"
    if not all(s.may_add for s in usable):
        return "one may be a supply's, and its input voltage is unknown"
    silent = [s.name for s in usable if s.power_w is None]
    if silent and extent == "controller":
        give = "give"
        if len(silent) == 1:
            give = "gives"
        return f"{', '.join(silent)} {give} no reading, so that a sum would lack it"
    return None


def _unlisted(usable: Sequence[Sensor], units: set[str]) -> str | None:
    """Why a controller may have supplies that it does not list."""
    if len(units) < 2:
        return "a single supply sensor may not cover all supplies"
    numbers = set()
    for unit in units:
        if unit.isdigit():
            numbers.add(int(unit))
    if numbers and len(numbers) == len(units) and not _follow_each_other(numbers):
        return "by their numbers, a supply is missing"
    if len({s.kind for s in usable}) != 1:
        return "the supplies have several sensors each"
    return None


def _follow_each_other(numbers: set[int]) -> bool:
    return min(numbers) in (0, 1) and max(numbers) - min(numbers) == len(numbers) - 1


def _family(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """All supplies by a word that is not known: numbered sensors that are all of one kind."""
    family = [s for s in sensors if s.role in ("unknown", "rail")]
    if extent == "board" or not family or not family[0].unit or len({s.kind for s in family}) > 1:
        return None
    if all(s.role == "rail" for s in family):
        return None
    if len(family) == 1:
        return Choice(FAMILY, reason=f"{family[0].name} is one of several by its number")
    if sensor_names.is_node(family[0].name):
        return Choice(FAMILY, reason="they are of several machines")
    choice = replace(added(sensors, family, extent), rule=FAMILY)
    listed = ", ".join(s.name for s in family)
    doubt = None
    if not choice.reason:
        doubt = f"{listed} are assumed to be all supplies of the machine"
    return replace(choice, doubt=doubt)


def _input_line(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """The line of a board with the most volts and watts, if its label has a word for an input and
    no other voltage: that the board is fed through it alone is assumed."""
    lines = [s for s in sensors if s.may_add and sensor_names.is_line(s.label)]
    if extent != "board" or len(lines) != 1:
        return None
    (line,) = lines
    others = _without(sensors, lines)
    if not _has_the_most_volts(line, others) or not _has_volts_of_its_label(line):
        return None
    doubt = f"that the system is fed through {line.name} ({line.label}) alone is assumed"
    return agreement.checked(replace(_chosen(LINE, [line]), doubt=doubt), line, others, extent)


def _has_the_most_volts(line: Sensor, others: Sequence[Sensor]) -> bool:
    """Whether all voltages are known, and no other is as high."""
    volts = [s.volts for s in others if s.volts is not None]
    if line.volts is None or _is_rail(line) or len(volts) < len(others):
        return False
    return line.volts >= _SAME_VOLTS * max(volts, default=0.0)


def _has_volts_of_its_label(line: Sensor) -> bool:
    of_label = sensor_names.line_volts(line.label)
    if of_label is None or line.volts is None:
        return True
    return of_label / _SAME_VOLTS <= line.volts <= of_label * _SAME_VOLTS


def _only(sensors: Sequence[Sensor], extent: Extent) -> Choice | None:
    """An unlabelled sensor without others: that a board is fed through it is assumed."""
    if extent != "board" or len(sensors) != 1:
        return None
    (sensor,) = sensors
    if sensor.role != "rail" or sensor.label or _is_rail(sensor) or not sensor.may_add:
        return None
    doubt = f"{sensor.name} has no label: that it measures the complete system is assumed"
    return replace(_chosen(ONLY, [sensor]), doubt=doubt)


RULES: tuple[Rule, ...] = (
    _board_inputs,
    _total,
    _acpi,
    _several_machines,
    _supplies,
    _family,
    _silent_total,
    _input_line,
    _only,
)


def _refused(sensors: Sequence[Sensor], extent: Extent) -> Choice:
    roles = {s.role for s in sensors}
    if roles <= {"part", "package", "module"}:
        return Choice(NONE, reason="they are of parts of the machine")
    if extent == "board":
        one = "it may be one rail of several"
        return Choice(NONE, reason=one if len(sensors) == 1 else "several may contain each other")
    if "rail" in roles and roles <= {"part", "package", "module", "rail"}:
        return Choice(NONE, reason="they are of rails")
    return Choice(NONE, reason="none is clearly the system's")


def _chosen(rule: str, sensors: Sequence[Sensor], contents: Contents | None = None) -> Choice:
    contents = contents or sensors[0].contents
    return Choice(rule, tuple(s.name for s in sensors), contents=contents)


def _sum_w(sensors: Sequence[Sensor]) -> float:
    return sum(s.power_w or 0.0 for s in sensors)


def _without(sensors: Sequence[Sensor], some: Sequence[Sensor]) -> list[Sensor]:
    return [s for s in sensors if s not in some]


def _is_rail(sensor: Sensor) -> bool:
    return sensor.volts is not None and sensor.volts < LEAST_INPUT_V
