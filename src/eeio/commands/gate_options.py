"""The gate of `compare`, `check` and `plan`: which change is tolerated, and which must be found."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eeio.analysis.metrics import gated, gated_name
from eeio.errors import LimitError, RejectedError
from eeio.options import option


@dataclass(frozen=True)
class FailIf:
    """`--fail-if`: how much worse, as a share, and in which metric (None: the headline's)."""

    share: float
    metric: str | None


class _Once(argparse.Action):
    """Rejects the option if it is given again: only the last one would count."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string}: give it once, and run the command again for another")
        setattr(namespace, self.dest, values)


def fail_if_option(help: str, group: str) -> Any:
    """The field `fail_if: FailIf | None`."""
    return option(
        "--fail-if",
        value="worse:SHARE[:METRIC]",
        parse=_fail_if,
        action=_Once,
        help=f"{help}, e.g. worse:5%%:J/GB; METRIC: {', '.join(gated())}",
        group=group,
    )


def detect_option(help: str, group: str) -> Any:
    """The field `detect: float | None`, a share."""
    return option("--detect", value="SHARE", parse=share, help=f"{help}, e.g. 5%%", group=group)


def check_detect(fail_if: FailIf, detect: float) -> None:
    """Raises RejectedError for a change that is tolerated."""
    if detect <= fail_if.share:
        raise RejectedError(
            f"--detect {100 * detect:g}%: a change of {100 * fail_if.share:g} % is tolerated "
            f"(--fail-if worse:{100 * fail_if.share:g}%); give a larger change to detect"
        )


def share(text: str) -> float:
    """`5%` or `0.05`. `5` would be 500 %, and `1` may be meant as 1 %: both are rejected."""
    is_percent = text.endswith("%")
    try:
        divisor = 1
        if is_percent:
            divisor = 100
        value = float(text.removesuffix("%")) / divisor
    except ValueError:
        value = -1.0
    if not 0 <= value < (10 if is_percent else 1):
        raise LimitError(f"{text!r} is not a share; give such as 5% or 0.05")
    return value


def _fail_if(text: str) -> FailIf:
    parts = text.split(":")
    metric = None
    if len(parts) > 2:
        metric = gated_name(parts[2])
    known = metric is None or metric in gated()
    if parts[0] != "worse" or len(parts) not in (2, 3) or not known:
        raise LimitError(
            f"{text}: give worse:5%, or with a metric worse:5%:MB/s ({', '.join(gated())})"
        )
    try:
        return FailIf(share(parts[1]), metric)
    except LimitError as error:
        raise LimitError(f"{text}: {error}") from error
