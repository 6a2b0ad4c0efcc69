"""dd's last lines, with the command above them."""

import re
from collections.abc import Iterator, Mapping

from eeio.importing.readers.found import (
    KIB,
    FoundPhase,
    FoundReport,
    count,
    figure,
    only_one,
    size,
)
from eeio.importing.readers.labels import headings, label
from eeio.importing.readers.rules import Rules

TEXT = re.compile(
    # Behind blanks or a label, as in notes and logs.
    r"^(?:[ \t]{0,20}(?:#|//)?[ \t]{0,20}"
    r"|[^\r\n]{0,40}?(?:[:\"'`>|\]]|/dev/[\w/-]{1,40})[ \t]{0,3})"
    r"(\d{1,20}) bytes? (?:\([^)\n]*\) )?(?:copied|transferred)(?: in|,) ([\d.,e-]{1,30}) "
    r"(?:s|secs?|seconds?)\b"
    # In other languages, as coreutils has them: `1048576 Bytes (1,0 MB) kopiert, 0,5 s, 2,1 MB/s`.
    r"|^(\d{1,20}) ?[^\W\d]\w{0,19} ?[(（][^)）\n]*[)）] ?[^\d\n]{1,40}([\d.,e-]{1,30}) "
    r"\w{1,9}[,，] ?[\d.,]{1,30} [kKMGT]?B/\w",
    re.M,
)


_RECORDS = re.compile(r"^\s{0,20}\d{1,20}\+\d{1,20}\s", re.M)
"""dd's records in and out, above the line of a copy that has ended."""


def _amounts(copy: re.Match[str]) -> tuple[int, float]:
    """Bytes and seconds."""
    return int(copy[1] or copy[3]), figure((copy[2] or copy[4]).replace(",", "."))


def _is_progress(below: str, above: str) -> bool:
    """Whether dd's records are below a line and not above it, and no other dd begins below."""
    records = _RECORDS.search(below) and not _RECORDS.search(above)
    return bool(records) and not re.search(r"\bdd\s", below)


def _planned(options: Mapping[str, str]) -> int | None:
    """The bytes that a command copies if nothing ends it; None if it does not say."""
    blocks = count(options.get("count"))
    return None if blocks is None else _in_blocks(options, blocks)


def _in_blocks(options: Mapping[str, str], blocks: int) -> int | None:
    bs = options.get("bs", "512")
    length = size(bs, 1000 if bs[-1:] == "B" else KIB)
    return None if length is None else blocks * length


def _may_be_of(options: Mapping[str, str], moved: int) -> bool:
    """Whether a copy of so many bytes may be of a command with these options."""
    planned = _planned(options)
    return planned is None or moved <= 1.001 * planned


def _operation(options: Mapping[str, str]) -> str | None:
    """Without `of` it writes into a pipe, and from such a device to /dev/null it moves nothing."""
    made = options.get("if") in ("/dev/zero", "/dev/random", "/dev/urandom")
    if "of" not in options or made == (options["of"] == "/dev/null"):
        return None
    # Without `if` it reads a pipe: what fills that is not known.
    return "write" if made else "read" if "if" in options else None


def _is_direct(options: Mapping[str, str]) -> bool:
    return "direct" in options.get("oflag", "") + options.get("iflag", "")


_COMMAND = re.compile(r"\bdd\s{1,99}((?:(?!\bdd\s)[^\n;])*\b[io]f=(?:(?!\bdd\s)[^\n;])*)")
_OPTION = re.compile(r"\b(if|of|bs|count|oflag|iflag|conv)=([^\s;|&<>]{1,300})")
_SHELL_MARKS = re.compile("[\"'`)]")
_ONLY_RECORDS = re.compile(
    r"[^\n]{0,200}\n(?:\s{0,20}\d{1,20}\+\d{1,20} [^\n]{1,80}\n|\s{0,9}\n){0,9}"
)


def read_text(text: str) -> Iterator[FoundReport]:
    """One report for each copy. dd reports neither direction nor options; its command line, if the
    file has it above, does."""
    start, options, several, follows = 0, dict[str, str](), False, False
    copies = list(TEXT.finditer(text))
    above_each = headings(text, [copy.start() for copy in copies])
    for place, (copy, following, heading) in enumerate(
        zip(copies, [*copies[1:], None], above_each, strict=True)
    ):
        above = text[start : copy.start()]
        if following is not None and _is_progress(text[copy.end() : following.start()], above):
            (moved, seconds), (all_bytes, all_s) = _amounts(copy), _amounts(following)
            if moved <= all_bytes and seconds <= all_s:
                continue  # of the same copy, which ends later
        start = copy.end()
        moved, seconds = _amounts(copy)
        lines = list(_COMMAND.finditer(above))
        command = [dict(_OPTION.findall(_SHELL_MARKS.sub("", line[1]))) for line in lines]
        if len(command) > 1:  # such as a list of what was run
            last = command[-1]
            # The blocks that dd has counted exclude commands with blocks of another size.
            if blocks := re.findall(r"^\s{0,20}(\d{1,20})\+0\s", above, re.M):
                command = [c for c in command if _in_blocks(c, int(blocks[-1])) == moved]
            exact = [one for one in command if _planned(one) == moved]
            ends_itself = bool(command) and _planned(command[-1]) is None
            # It may be of either, or is of neither.
            command = [] if bool(exact) == ends_itself else exact or command
            below = text[copy.end() : following.start()] if following else "dd "
            follows = _ONLY_RECORDS.fullmatch(above[lines[-1].end() :]) is not None
            if command[-1:] == [last] and follows and re.search(r"\bdd\s", below):
                command = [last]  # A list of commands has its outputs below it.
            options = {}
        if command:
            # Which of them it is of is not known, but what they have in common is.
            options = {
                name: value for name, value in command[-1].items()
                if all(one.get(name) == value for one in command)
            }  # fmt: skip
        elif several or not _ONLY_RECORDS.fullmatch(above):
            options = {}  # else it is the next one of a loop
        several = len(lines) > 1 or (several and not lines)
        follows = follows if lines else follows and _ONLY_RECORDS.fullmatch(above) is not None
        command = command or ([options] if options else [])
        amount = copy.start(1 if copy[1] else 3)
        before = label(text[copy.start() : amount].rstrip("\"'` "))
        if not _may_be_of(options, moved):
            command, options = [], {}
        bs = options.get("bs", "")
        # Without any setting nothing shows that another copy of the file is a repetition, nor does
        # a heading above the outputs of several commands.
        is_comparable = (
            options or before or len(copies) == 1 or (heading and not (several and follows))
        )
        counted = {"bytes": str(moved)} if is_comparable else {}
        yield FoundReport((FoundPhase(
            name="dd", operation=only_one(_operation(one) for one in command),
            access_pattern="sequential", group=str(place),
            # `1M` is binary, `1MB` is not (dd(1)).
            request_bytes=size(bs, 1000 if bs[-1:] == "B" else KIB) if bs else None,
            direct=only_one(_is_direct(one) for one in command),
            jobs=1, bytes=moved, runtime_s=seconds,
            bandwidth_bytes_per_s=moved / seconds if seconds else None,
            options=options | counted | ({"label": before} if before else {}),
        ),), heading=heading)  # fmt: skip


RULES = {"dd": Rules()}
