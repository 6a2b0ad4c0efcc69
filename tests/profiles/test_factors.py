"""factors.conf, read by factors.awk for the scripts and by eeio for plans: both say the same."""

import os
import random
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from eeio.errors import RejectedError
from eeio.files import documents
from eeio.measure.profiles import factors, profile
from eeio.measure.profiles.factors import Factor, Factors
from tests.profiles.harness import FOLDERS, copy_of

AWKS = [awk for awk in ("awk", "mawk", "gawk", "busybox") if shutil.which(awk)]
WRONG = ("", "0", "1", "07", "-1", "1.5", "4k", "5000", "4K", "3m", "1t", "2g", "9" * 14 + "g",
         "9" * 19, "on", "none", "it's", "a b", "a,b", "$(reboot)", "*", "a\nb", "\\")  # fmt: skip
COMBINATIONS = 10_000
EACH_ACCEPTED = 40
"""Of each profile: combinations of factors, and accepted ones that both try. Of rejected ones they
try one for each message."""


def definition(folder: Path) -> Factors:
    found = profile.load(folder).factors
    assert found is not None
    return found


def values(factor: Factor) -> list[str]:
    """Allowed values, from one end of a range to the other."""
    if factor.kind == "words":
        return factor.words
    if factor.kind == "text":
        return ["hou10ni", "/dev/null"]
    first, last = factor.span
    usual = {"number": ("1", "2", "3", "4", "8", "16", "17", "100"),
             "size": ("1", "4k", "64k", "512k", "1m", "4m", "8m", "64m", "1g")}  # fmt: skip
    candidates = {first, last, factor.other or first, *usual[factor.kind]}
    return [value for value in sorted(candidates) if factor.problem(value) is None]


def samples(known: Factors, source: random.Random) -> Iterator[list[str]]:
    """Arguments of runs: each value alone, and some wrong ones."""
    yield []
    yield ["speed=high"]
    yield ["operation"]
    for factor in known.by_name.values():
        for value in (*values(factor), *source.sample(WRONG, 4)):
            yield [f"{factor.name}={value}"]
    for name, value in known.never:
        yield [f"{name}={value}"]


def combinations(known: Factors, source: random.Random) -> Iterator[list[str]]:
    """Arguments of runs: the factors of two conditions, and another factor."""
    for _ in range(COMBINATIONS):
        named = {source.choice(list(known.by_name))}
        for rule in source.choices(known.rules, k=2) if known.rules else ():
            named |= set(rule.names) & known.by_name.keys()
        yield [f"{name}={source.choice(values(known.by_name[name]))}" for name in sorted(named)]


def in_shell(folder: Path, arguments: list[str], *awk: str) -> str | None:
    """The message of factors.awk; None if it accepts the arguments."""
    done = subprocess.run(
        [*awk, "-f", str(folder / "factors.awk"), "--", *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "EEIO_PRESET": "quick"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    *_, command, message = shlex.split(done.stdout)
    return message if command == "refuse" else None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_scripts_and_plans_reject_the_same_factors_with_the_same_text(
    folder: Path, tmp_path: Path
) -> None:
    found = profile.load(folder)
    known = definition(folder)
    home = copy_of(folder, tmp_path / "home")
    no_preset = f"EEIO_PRESET=quick: not in {home}/presets.conf"
    source = random.Random(folder.name)
    expected = [
        (arguments, known.problem(arguments, found.presets["quick"], no_preset))
        for arguments in (*samples(known, source), *combinations(known, source))
    ]
    messages = Counter[str | None]()
    for number, (arguments, message) in enumerate(expected):
        messages[message] += 1
        if messages[message] > (EACH_ACCEPTED if message is None else 1):
            continue
        awk = AWKS[number % len(AWKS)]
        command = ("busybox", "awk") if awk == "busybox" else (awk,)
        assert in_shell(home, arguments, *command) == message, (awk, arguments)
    assert messages[None] > EACH_ACCEPTED
    # Each condition rejects some of them.
    for rule in known.rules:
        first, last = rule.message.partition("{")[0], rule.message.rpartition("}")[2]
        assert (
            not rule.message
            or "missing" in rule.message
            or any(
                message and message.startswith(first) and message.endswith(last)
                for message in messages
            )
        ), rule.message


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_menus_have_values_of_the_factors(folder: Path) -> None:
    known = definition(folder)
    root = documents.read_xml(folder / "test-definition.xml")
    for option in root.findall("TestSettings/Option"):
        prefix = option.findtext("ArgumentPrefix") or ""
        for entry in option.findall("Menu/Entry"):
            arguments = f"{prefix}{entry.findtext('Value')}".split()
            pairs = [argument.partition("=") for argument in arguments]
            for name, _, value in pairs:
                assert name in known.by_name, arguments
                assert known.by_name[name].problem(value) is None, arguments


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_every_preset_has_the_values_that_a_profile_requires(folder: Path) -> None:
    found = profile.load(folder)
    for preset, pairs in found.presets.items():
        assert definition(folder).problem([], pairs, f"{preset} has too few values") is None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_plan_checks_the_factors_of_a_preset(folder: Path) -> None:
    """They are arguments of the scripts."""
    found = profile.load(folder)
    for preset in found.presets:
        assert found.why_not(preset, found.factors_of(preset, {})) is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("size size 4k | bytes", "FIRST..LAST"),
        ("size size 4k..8m | bytes\nsize size 1k..2k | bytes", ":2: .*repeated factor"),
        ("depth number one..2 | requests", "FIRST..LAST"),
        ("depth number 1..2 default=3 | requests", "depth=3: give a whole number from 1 to 2"),
        ("depth number 1..2 defualt=1 | requests", "unknown option defualt"),
        ("depth number 1..2", "MEANING"),
        ("depth float 1..2 | requests", "words.number.size.text"),
        ("never depth=1 | no", "depth"),
        ("require depth=1 | no", "depth"),
        ("depth number 1..2 | requests\nrequire depth=1", "needs a message"),
        ("depth number 1..2 | requests\nrequire depth=1 | {width}", "width"),
        ("depth number 1..2 | requests\nwhen depth=1 set width=1", "width"),
        ("depth number 1..2 | requests\nwhen depth=1", "require TERM"),
        ("depth number 1..2 | requests\nrequire depth~1 | no", "not a condition"),
        ("depth number 1..2 | requests\nrequire depth>=width | no", "width"),
    ],
)
def test_an_invalid_factors_conf_is_rejected(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "factors.conf"
    path.write_text(line + "\n")
    with pytest.raises(RejectedError, match=message) as caught:
        factors.read(path)
    assert re.match(rf"{path}:\d: ", str(caught.value))


def test_calculations_in_conditions(tmp_path: Path) -> None:
    (tmp_path / "factors.conf").write_text(
        "a number 0..100 default=0 | a\nb size 1..1g default=1 | b\n"
        "require b/4096*4096>=a*512 | {a} of {b}\nrequire b%2=0 | odd {b}\n"
        "when a=0 require b/a=0 b%a=0 | not 0\n"
    )
    shutil.copy(FOLDERS[0].parent / "common/factors.awk", tmp_path)
    (tmp_path / "presets.conf").write_text("quick x=1\n")
    known = factors.read(tmp_path / "factors.conf")
    assert known is not None
    for arguments, expected in (
        (["b=4k", "a=8"], None),
        (["b=8191", "a=9"], "9 of 8191"),
        (["b=8191", "a=8"], "odd 8191"),
        (["b=8190", "a=8"], None),
        (["b=8190", "a=0"], None),
    ):
        assert known.problem(arguments, {}, "") == expected
        for awk in AWKS:
            command = ("busybox", "awk") if awk == "busybox" else (awk,)
            assert in_shell(tmp_path, arguments, *command) == expected
