"""`eeio power watch`: a live view of the meters."""

import argparse
import sys
import time

from eeio.commands.power.meters import NOWHERE, add_meters, opened, seconds
from eeio.commands.power.readings import kind_word
from eeio.errors import EXIT_DONE
from eeio.terminal import raw
from eeio_power.reading import EnergyReading
from eeio_power.sampler import Sampler


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser("watch", help="live view", description="Shows power until Ctrl-C.")
    add_meters(parser)
    parser.add_argument("--interval", type=seconds, default=1.0, metavar="S", help="(default: 1)")
    parser.add_argument("--count", type=int, metavar="N", help="end after N lines a meter")
    parser.set_defaults(action=watch)


def watch(arguments: argparse.Namespace) -> int:
    live = sys.stdout.isatty()
    with opened(arguments.meter) as meters:
        slowest_s = max(meter.native_period_s for meter in meters)
        # A window of fewer than two readings says nothing.
        window_s = max(2.0 * slowest_s, arguments.interval)
        keep_s = 10.0 * window_s
        with Sampler(meters, NOWHERE, arguments.rate, keep_s=keep_s) as sampler:
            try:
                _watch(sampler, window_s, arguments.interval, arguments.count, live)
            except KeyboardInterrupt:
                print()
    return EXIT_DONE


def _watch(
    sampler: Sampler, window_s: float, interval_s: float, count: int | None, live: bool
) -> None:
    shown = 0
    number = 0
    while count is None or number < count:
        number += 1
        time.sleep(interval_s)
        now_s = time.monotonic()
        readings = sampler.energy(now_s - window_s, now_s)
        if live and shown:
            raw(sys.stdout).write(f"\x1b[{shown}A\x1b[J")
        for reading in readings:
            print(_watch_line(reading), flush=True)
        shown = len(readings)


def _watch_line(reading: EnergyReading) -> str:
    head = f"{time.strftime('%H:%M:%S')}  {reading.meter:12}{reading.domain:8}"
    if reading.power_w is None:
        return f"{head}{'-':>11}    {'; '.join(reading.reasons)[:90]}"
    estimate = "" if reading.kind == "measured" else f"  {kind_word(reading)}"
    return f"{head}{reading.power_w:11.2f} W{estimate}{'  doubtful' if reading.doubtful else ''}"
