"""The protocol of a campaign: that of the suite's preset, with what the options change."""

from dataclasses import replace

from eeio.errors import RejectedError
from eeio.measure.profiles.suite import Suite
from eeio.record.design import AdaptiveProtocol, Options, Protocol, StudyProtocol


def chosen(suite: Suite, options: Options) -> Protocol:
    """RejectedError for options that this protocol cannot have."""
    protocol = _adaptive(suite.protocol(options.preset), options)
    if protocol.steady is not None and options.repetitions is not None:
        raise RejectedError(
            f"suite {suite.name} runs until the drive is in its steady state, for at least "
            f"{protocol.repetitions} rounds: leave out --repetitions"
        )
    if protocol.adaptive is not None:
        instead_of = suite.protocol(protocol.sizes_of or options.preset).repetitions
        rule = replace(protocol.adaptive, fixed_repetitions=instead_of)
        protocol = replace(protocol, adaptive=rule)
    settle_s = protocol.settle_s
    if options.settle_s is not None:
        settle_s = options.settle_s
    idle_s = protocol.idle_s
    if options.idle_s is not None:
        idle_s = options.idle_s
    min_phase_s = protocol.min_phase_s
    if options.min_phase_s is not None:
        min_phase_s = options.min_phase_s
    return replace(
        protocol,
        repetitions=options.repetitions or protocol.repetitions,
        settle_s=settle_s,
        idle_s=idle_s,
        work_bytes=options.work_bytes or protocol.work_bytes,
        min_phase_s=min_phase_s,
        study=_study(protocol.study, options, suite),
    )


def _study(study: StudyProtocol | None, options: Options, suite: Suite) -> StudyProtocol | None:
    if options.windows_of is not None:
        study = _with_windows(study, options.windows_of, suite)
    if study is not None and options.repetitions:
        # A number that the user gives is that number, whatever the spread.
        return replace(study, half_width=None)
    return study


def _with_windows(study: StudyProtocol | None, preset: str, suite: Suite) -> StudyProtocol:
    """The study with the hold of delayjc that another preset has."""
    other = suite.protocol(preset).study
    if study is None or other is None:
        raise RejectedError("--windows-of belongs to suites with `study:` in their protocol.yaml")
    return replace(
        study,
        window_us=other.window_us,
        max_resets=other.max_resets,
        flush_first=other.flush_first,
    )


_LEAST_ADAPTIVE, _FEWEST_ADAPTIVE = 4, 3


def _adaptive(protocol: Protocol, options: Options) -> Protocol:
    """The protocol with the rule that the options ask for; RejectedError where that is none."""
    chosen = {
        name: value
        for name in ("precision", "indifference", "floor", "pilot")
        if (value := getattr(options, name)) is not None
    }
    if protocol.adaptive is None and not options.adaptive:
        if chosen:
            raise RejectedError(
                f"--{min(chosen)} is of adaptive campaigns: give --adaptive, or --preset adaptive"
            )
        return protocol
    if protocol.study is not None or protocol.steady is not None:
        raise RejectedError(
            f"suite {options.suite} has another repetition rule: leave out --adaptive"
        )
    if protocol.adaptive is None:
        most = max(AdaptiveProtocol().most_repetitions, protocol.repetitions)
        least = min(_LEAST_ADAPTIVE, max(_FEWEST_ADAPTIVE, protocol.repetitions))
        usual = AdaptiveProtocol()
        # No pause is longer than the preset's.
        pause_s = protocol.settle_s
        if options.settle_s is not None:
            pause_s = options.settle_s
        rule = replace(
            usual,
            most_repetitions=most,
            settle_least_s=min(usual.settle_least_s, pause_s),
            settle_most_s=pause_s,
        )
        protocol = replace(protocol, adaptive=rule, repetitions=least)
    assert protocol.adaptive is not None
    rule = replace(protocol.adaptive, **chosen)
    repetitions = options.repetitions or protocol.repetitions
    if repetitions < _FEWEST_ADAPTIVE:
        raise RejectedError(
            f"{repetitions} repetitions at least: a spread by luck of so few would end an adaptive "
            f"campaign; give {_FEWEST_ADAPTIVE} or more"
        )
    if (reason := rule.impossible()) is not None:
        raise RejectedError(reason)
    return replace(protocol, adaptive=rule)
