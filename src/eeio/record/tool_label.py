"""How labels name an experiment's tool: with the arguments that tell experiments apart."""

from collections.abc import Sequence
from dataclasses import replace

from eeio.record.run import Experiment
from eeio.record.tools import about

_PROCESSORS = ("frequency_hz", "smt", "turbo")

_IMPORTED = "file"
"""An argument that only imported experiments have: the name of their file."""
_OF_ALL = frozenset(
    (
        "file_size",
        "runtime_s",
        "timeout_s",
        "files",
        "variant",
        "frequency_hz",
        "smt",
        "turbo",
        "words",
    )
)
"""Arguments of many tools, which labels write in their own way or not at all."""


def differences(experiment: Experiment) -> tuple[str, ...]:
    """`mpiio`, `x4`, `collective`: how experiments with one tool differ, but for the settings of
    processors."""
    arguments = dict(experiment.arguments)
    told = about(experiment.tool)
    named = told.named or ()
    parts = []
    if experiment.api != "posix":
        parts = [experiment.api]
    if experiment.processes > 1:
        parts.append(f"x{experiment.processes}")
    if "files" in arguments:
        parts.append(f"{arguments['files']} files")
    written = set()
    for (name, value), text in told.words.items():
        if arguments.get(name) == value:
            written.add(name)
            parts.append(text)
    if "variant" in arguments:
        parts.append(arguments["variant"])
    parts += [f"{name}={arguments[name]}" for name in named if name in arguments]
    if told.named is None or _IMPORTED in arguments:
        others = [name for name in arguments if name not in {*_OF_ALL, *named, *written}]
        parts += [f"{name}={arguments[name]}" for name in others]
    return tuple(parts)


def details(experiments: Sequence[tuple[Experiment, str | None]]) -> dict[str, tuple[str, ...]]:
    """Id -> the differences of each experiment of a campaign, with all arguments in which it
    differs from others that would have the same label: those of a sweep, for example. With each
    experiment comes the argument that a pilot chose for it, if any."""
    factors: dict[str, tuple[str, ...]] = {}
    alike: dict[tuple[Experiment, tuple[str, ...]], list[tuple[Experiment, str | None]]] = {}
    for experiment, sized in experiments:
        factors[experiment.id] = differences(experiment)
        key = _without_details(experiment), factors[experiment.id]
        alike.setdefault(key, []).append((experiment, sized))
    for same in alike.values():
        common = set.intersection(*(set(experiment.arguments) for experiment, _ in same))
        for experiment, sized in same:
            factors[experiment.id] += tuple(
                f"{name}={value}"
                for name, value in experiment.arguments
                if (name, value) not in common and name not in (sized, "words", *_PROCESSORS)
            )
    return factors


def _without_details(experiment: Experiment) -> Experiment:
    kept = tuple(pair for pair in experiment.arguments if pair[0] in (*_PROCESSORS, "load"))
    return replace(experiment, api="posix", processes=1, arguments=kept)


def tool_label(experiment: Experiment, of_campaign: Sequence[str] | None = None) -> str:
    """`ior mpiio x4 collective 1.2 GHz`: the tool, and how its experiments differ; `of_campaign`
    are the details that its campaign needs."""
    arguments = dict(experiment.arguments)
    parts = [arguments.get("words") or experiment.tool]
    parts += differences(experiment) if of_campaign is None else of_campaign
    if "frequency_hz" in arguments:
        parts.append(f"{int(arguments['frequency_hz']) / 1e9:g} GHz")
    for name in ("smt", "turbo"):
        if name in arguments:
            parts.append(f"{name} {arguments[name]}")
    return " ".join(parts)
