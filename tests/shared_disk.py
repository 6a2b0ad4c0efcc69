"""Tests run at once on one disk, and so does other work on the machine: the I/O of one is other I/O
to the campaign of another, and the machine is idle in no idle baseline."""

import math

from eeio.measure.campaign import command_bytes
from eeio.measure.campaign.probes import OtherIo
from eeio.record.run import Run
from eeio.record.tools.capture import ToolResult
from eeio_power import idleness


def unchanged(self: OtherIo, result: ToolResult, run: Run) -> ToolResult:
    return result


def allow_other_io() -> None:
    """From now on no run of this process is rejected, or has a remark, for other I/O, and no idle
    baseline either."""
    OtherIo.add_to_result = unchanged  # type: ignore[method-assign]
    command_bytes.LEAST_CHANGE_BYTES = math.inf  # type: ignore[assignment]
    command_bytes.SLACK_BYTES = math.inf  # type: ignore[assignment]
    idleness.MOST_BYTES_PER_S = idleness.MOST_PROCESSORS = math.inf
