"""The random order of a campaign's runs."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from eeio.record.design import Design, Options, PlannedExperiment, PlannedRun


def order(
    experiments: list[PlannedExperiment], repetitions: int, options: Options
) -> tuple[PlannedRun, ...]:
    """All repetitions of all experiments in one random order that the seed repeats.

    File systems made on one device cannot be there at once: they become blocks, in random order,
    each random inside.
    """
    random_order = random.Random(options.seed)
    pairs = [(e, repetition) for e in experiments for repetition in range(1, repetitions + 1)]
    random_order.shuffle(pairs)
    volumes = sorted({planned.volume for planned in experiments} - {""})
    if volumes and options.device:
        random_order.shuffle(volumes)
        pairs.sort(key=lambda pair: volumes.index(pair[0].volume))
    return tuple(
        PlannedRun(index, planned, repetition, random_order.randrange(1, 2**31))
        for index, (planned, repetition) in enumerate(pairs)
    )


def in_blocks(
    experiments: Sequence[PlannedExperiment], repetitions: int, sizes: Sequence[int], seed: int
) -> tuple[PlannedRun, ...]:
    """All repetitions in a random order of blocks, in which `sizes[k]` repetitions of
    `experiments[k]` follow each other."""
    random_order = random.Random(seed)
    blocks = []
    for experiment, size in zip(experiments, sizes, strict=True):
        for first in range(1, repetitions + 1, size):
            blocks.append((experiment, range(first, min(first + size, repetitions + 1))))
    random_order.shuffle(blocks)
    pairs = [(experiment, repetition) for experiment, block in blocks for repetition in block]
    return tuple(
        PlannedRun(index, experiment, repetition, random_order.randrange(1, 2**31))
        for index, (experiment, repetition) in enumerate(pairs)
    )


def in_rounds(
    experiments: Sequence[PlannedExperiment], repetitions: int, design: Design
) -> tuple[PlannedRun, ...]:
    """Each repetition of all experiments before the next. Each round has a new random order,
    continued by `another_round`."""
    made = replace(design, runs=())
    for _ in range(repetitions):
        made = replace(made, runs=another_round(made, experiments))
    return made.runs


def another_round(
    design: Design, experiments: Sequence[PlannedExperiment]
) -> tuple[PlannedRun, ...]:
    """The design's runs with one more repetition of each of these, in a random order that the seed
    and the runs before it decide."""
    done = Counter(run.experiment.experiment.id for run in design.runs)
    random_order = random.Random(f"{design.options.seed}-{len(design.runs)}")
    drawn = list(experiments)
    random_order.shuffle(drawn)
    if design.options.device:
        drawn.sort(key=lambda planned: planned.volume)
    return (
        *design.runs,
        *(
            PlannedRun(
                len(design.runs) + number,
                planned,
                done[planned.experiment.id] + 1,
                random_order.randrange(1, 2**31),
            )
            for number, planned in enumerate(drawn)
        ),
    )
