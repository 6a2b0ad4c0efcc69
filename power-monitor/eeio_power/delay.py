"""How late a meter's readings are, and over how long each is a mean.

A power reading at time t is the mean from t - lag - averages to t - lag; a counter's value is that
of t - lag. The energy of a window is therefore integrated over readings that come later. What the
meter cannot separate at the edges of the window becomes uncertainty (`delay_error_j`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eeio.units import quantities as q

# The mean of two neighbouring levels reaches each of them half its length after their border; this
# many further readings show the level.
READINGS_BEYOND = 2
# A step of power at the very edge of a window: half the mean's length is outside, with weights that
# fall from 1/2 to 0, and half is inside, with weights that lack 1/2 to 0. Both areas are 1/8.
EDGE_SHARE = 1.0 / 8.0
HIDDEN_SHARE = 1.0 / 2.0
"""Of a mean: power that repeats within the mean's length (bursts, runs with pauses) gives flat
readings. What the window cuts off one repetition is at most its mean power less its least power,
times the length without the burst. Half the mean's energy covers bursts of any length over a least
power of half the mean power, and power that is on for half of the time."""
PARTS_OF_MEAN = 3.0
"""Power rises are looked at over this part of a mean: more parts see shorter bursts, and noise."""
MOST_S = 120.0
"""The longest lag and the longest mean that may be stated: eeio waits for the readings."""
MOST_MISSING = 0.1
"""Of a window: if the readings of more of it are missing, its energy is not known."""


@dataclass(frozen=True)
class Delay:
    """The delay of a channel, each with the half width of its uncertainty."""

    lag_s: float = 0.0
    averages_s: float = 0.0
    lag_within_s: float = 0.0
    averages_within_s: float = 0.0
    source: str = "unknown"
    """Who says so: a standard, a datasheet, the user, a calibration."""

    @property
    def unsure_s(self) -> float:
        """How far the middle of a mean may be from where it is assumed, s."""
        return self.lag_within_s + self.averages_within_s / 2.0

    @property
    def longest_s(self) -> float:
        """From the power to the last reading that contains it, s, at most."""
        return self.lag_s + self.lag_within_s + self.averages_s + self.averages_within_s

    @property
    def hidden_s(self) -> float:
        """A window's power times this is the uncertainty due to changes that a mean of power does
        not show, s."""
        return HIDDEN_SHARE * (self.averages_s + self.averages_within_s)

    @property
    def text(self) -> str:
        """Such as `0.5 ± 0.1 s late, mean of 1 s (user)`."""
        lag = _with_limit(self.lag_s, self.lag_within_s)
        mean = _with_limit(self.averages_s, self.averages_within_s)
        averages = "no mean"
        if self.averages_s or self.averages_within_s:
            averages = f"mean of {mean}"
        return f"{lag} late, {averages} ({self.source})"

    def shift_s(self, hold_s: float | None) -> float:
        """How much later than a window its readings are, s. A power reading is applied back over
        `hold_s`, as if it were a mean of that time; None for a counter."""
        if hold_s is None:
            return self.lag_s
        return self.lag_s + max(0.0, self.averages_s - hold_s) / 2.0

    def aligned(self, hold_s: float | None) -> "Delay":
        """That of readings whose clock was set by steps of load: their middle is in its place, so
        that they need no shift."""
        lag_s = self.lag_s - self.shift_s(hold_s)
        return replace(self, lag_s=lag_s, lag_within_s=0.0, averages_within_s=0.0)


def _with_limit(value_s: float, within_s: float) -> str:
    if within_s:
        return f"{value_s:g} ± {within_s:g} s"
    return f"{value_s:g} s"


def stated(known: Delay, lag_s: float | None, averages_s: float | None) -> Delay:
    """The delay with what the user states; a figure that is not stated remains as uncertain."""
    if lag_s is not None:
        known = replace(known, lag_s=lag_s, lag_within_s=0.0)
    if averages_s is not None:
        known = replace(known, averages_s=averages_s, averages_within_s=0.0)
    source = "stated by the user"
    if lag_s is None:
        source = f"mean stated by the user; lag: {known.source}"
    if averages_s is None:
        source = f"lag stated by the user; mean: {known.source}"
    return replace(known, source=source)


def later(delay: Delay, up_to_s: float) -> Delay:
    """Of readings that another program takes over up to `up_to_s` later."""
    return replace(
        delay,
        lag_s=delay.lag_s + up_to_s / 2.0,
        lag_within_s=delay.lag_within_s + up_to_s / 2.0,
    )


def unknown_up_to(lag_s: float, averages_s: float, source: str) -> Delay:
    """A delay of which only the largest values are known."""
    return Delay(lag_s / 2.0, averages_s / 2.0, lag_s / 2.0, averages_s / 2.0, source)


BMC = unknown_up_to(5.0, 5.0, "assumed of a BMC: up to 5 s late, means of up to 5 s")
"""No standard of BMCs (DCMI, Redfish, PMBus) states a lag or the time that `current` averages."""


MOST_MEAN_SHARE = 0.5
"""Of a window: a reading that is the mean of a longer time leaves its energy doubtful."""

NVIDIA = unknown_up_to(0.1, 1.0, "NVML: power.draw is the mean of up to one second")
PLUG = unknown_up_to(
    2.0, 1.0, "Tasmota, discussion 10391: changes show after up to 2 s; assumed of other plugs"
)

COUNTER = unknown_up_to(5.0, 0.0, "assumed of a counter: up to 5 s late")


def assumed(quantity: str, domain: str) -> Delay:
    """Of readings whose delay nobody states."""
    if quantity == "energy_j":
        return COUNTER
    if domain == "accelerator":
        return NVIDIA
    return BMC


LIMIT = q.Quantity("delay", "s", 0, MOST_S)
"""Of a lag, and of the time that a reading is the mean of."""


def read(body: Mapping[str, object]) -> Delay:
    """A delay as JSON has it. Raises LimitError, KeyError, TypeError."""
    delay = Delay(**body)  # type: ignore[arg-type]
    for name in ("lag_s", "averages_s", "lag_within_s", "averages_within_s"):
        LIMIT.checked(getattr(delay, name), name)
    if not isinstance(delay.source, str):
        raise TypeError("a delay without the text of its source")
    return delay


def edge_zones(
    delay: Delay, hold_s: float, start_s: float, end_s: float
) -> list[tuple[float, float]]:
    """The times around both edges of a (shifted) window whose readings show how much the power
    changes there, s."""
    reach_s = delay.unsure_s + delay.averages_s / 2.0 + READINGS_BEYOND * hold_s
    return [(edge_s - reach_s, edge_s + reach_s) for edge_s in (start_s, end_s)]


@dataclass(frozen=True)
class Near:
    """Readings around one edge of a window: times, s, and powers, W."""

    times_s: Sequence[float]
    watts: Sequence[float]


def delay_error_j(
    delay: Delay, near: Sequence[Near], hold_s: float, window_s: float, missing_s: float = 0.0
) -> float:
    """Uncertainty of the energy of a shifted window due to the delay, J.

    `near` are the readings in its `edge_zones`, one each `hold_s`. A window that is `unsure_s` off
    contains at most that time of the power after one edge instead of the power after the other.
    `missing_s`: how much less it was shifted than the delay requires, as there are no later
    readings.
    """
    every_w: list[float] = []
    for edge in near:
        every_w.extend(edge.watts)
    if not every_w:
        return 0.0
    longest_s = delay.averages_s + delay.averages_within_s
    # At least so long: a sharp step shows that a mean whose time is not known is a short one.
    mean_s = max(0.0, delay.averages_s - delay.averages_within_s)
    steps_w = [_step_w(edge, mean_s, hold_s) for edge in near]
    change_w = max(max(every_w) - min(every_w), *steps_w)
    # A window that is shorter than the mean shows only its share of a step.
    hidden = max(1.0, longest_s / window_s)
    unseen_s = delay.unsure_s + missing_s + 2.0 * EDGE_SHARE * longest_s + hold_s / 2.0
    return change_w * hidden * unseen_s


def _step_w(edge: Near, mean_s: float, hold_s: float) -> float:
    """The change of power that a mean of `mean_s` shows, W: it rises by the change times the
    share of the mean that has passed. So a burst that is shorter than the mean is seen, too."""
    baseline_s = max(hold_s, mean_s / PARTS_OF_MEAN)
    rise_w, later = 0.0, 0
    for time_s, power_w in zip(edge.times_s, edge.watts, strict=True):
        while later < len(edge.times_s) and edge.times_s[later] < time_s + 0.99 * baseline_s:
            later += 1
        if later < len(edge.times_s):
            rise_w = max(rise_w, abs(edge.watts[later] - power_w))
    return rise_w * mean_s / baseline_s
