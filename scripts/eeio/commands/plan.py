"""`eeio plan`: everything a campaign would do and touch; nothing is run or written."""

import argparse
from pathlib import Path

from eeio import hostnames
from eeio.campaign import plan as plans
from eeio.campaign.progress import format_duration
from eeio.commands import campaign_options
from eeio.errors import EXIT_DONE
from eeio.profiles import profile as profiles
from eeio.profiles import suite as suites
from eeio.target import device as devices
from eeio.target import signatures


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "plan",
        help="show what `run` with the same options would do; nothing is touched",
        description="Prints experiments, time, bytes written and all that would be touched.",
    )
    campaign_options.add(parser)
    parser.set_defaults(action=show)


def show(arguments: argparse.Namespace) -> int:
    options = campaign_options.options_of(arguments)
    suite = suites.find(options.suite)
    plan = plans.make(options, suite)
    plans.check_room(plan)
    protocol = plan.protocol
    print(f"{suite.name}: {suite.title}")
    quick = "" if protocol.is_measurement else " (QUICK: not a measurement)"
    print(f"preset {options.preset}{quick}, seed {options.seed}")
    print(
        f"{len(plan.experiments)} experiments x {protocol.repetitions} repetitions = "
        f"{len(plan.runs)} runs in one random order, {protocol.settle_s:g} s settle pause, "
        f"{protocol.idle_s:g} s idle baseline"
    )
    if protocol.study and protocol.study.half_width is not None:
        most = protocol.study.most_repetitions
        print(
            "repeated further until the 95 % interval of the mean is within "
            f"{protocol.study.half_width:.0%} of it, {most} times at most (not in the forecast)"
        )
    if plan.frequency_reason:
        print(f"frequency left as it is: {plan.frequency_reason}")
    print(f"about {format_duration(plan.expected_s)} (h:mm:ss) on a disk of medium speed")
    print(f"at most {plan.bytes_written / 1e9:.2f} GB written, test files included")
    for waiting in _names_waited_for(plan):
        print(waiting)
    print("\nexperiments:")
    for planned in plan.experiments:
        words = " ".join(f"{key}={value}" for key, value in sorted(planned.factors.items()))
        where = f" on {planned.place}" if planned.place else ""
        where += f", {planned.variant}" if planned.variant else ""
        where += f", {planned.frequency_hz / 1e9:g} GHz" if planned.frequency_hz else ""
        print(f"  {planned.experiment.id}  {planned.profile}{where}  {words}")
    if plan.not_measured:
        print("\nleft out:")
        for left_out in plan.not_measured:
            experiment = left_out.experiment
            print(f"  {experiment.id}  {experiment.tool} {experiment.level}: {left_out.reason}")
    print("\nwould be touched:")
    for line in _touched(plan):
        print(f"  {line}")
    return EXIT_DONE


def _names_waited_for(plan: plans.Plan) -> list[str]:
    """Names of this machine that MPI would ask a name server for."""
    if not any((profile.folder / "mpi.sh").is_file() for profile in plan.profiles.values()):
        return []
    return [
        f"the name {name}: {found.reason}; MPI over several hosts waits for it at each start (here "
        f"alone the profiles avoid that): {found.remedy}"
        for name, found in hostnames.unresolved().items()
    ]


def _touched(plan: plans.Plan) -> list[str]:
    options = plan.options
    lines = []
    if options.directory is not None:
        size = plan.room_bytes("")
        if size:
            lines.append(
                f"{options.directory}: {size / 1e6:.0f} MB of test files, removed at the end"
            )
        if options.device is None:
            lines += [
                f"{options.directory}: loop image with {filesystem}, removed at the end"
                for filesystem in plan.made_places
            ]
    if options.device is not None:
        lines += _device_lines(Path(options.device), options.erase is not None)
    if options.disk_cache != "leave":
        lines.append("the drive's write cache: switched during writes, then put back")
    if plan.protocol.study:
        lines.append("tracefs: an instance of its own while a run is traced, removed after it")
    if any(planned.frequency_hz for planned in plan.experiments):
        lines.append(
            f"{options.frequency_root / 'sys/devices/system/cpu'}: SMT and turbo off, frequencies "
            "set, all put back at the end"
        )
    lines.append("the page cache of the machine: dropped before every run (as root)")
    lines += [
        f"{profile.install_dir}: install.sh of {profile.identifier}"
        for profile in plan.profiles.values()
        if not profiles.is_installed(profile)
    ]
    return lines


def _device_lines(node: Path, erased: bool) -> list[str]:
    if not erased:
        return [f"{node}: read only"]
    found = signatures.listed(devices.carried(node), node)
    lost = f", {found} with it" if found else "; no file system or table was found on it"
    lines = [f"{node}: WRITTEN OVER: all that is on it is lost{lost}"]
    return lines + [f"{node}: also held open by {words}" for words in devices.readers(node)]
