"""dd's last lines, with the command above them."""

import re
from collections.abc import Iterator, Mapping

from eeio_parsers.format import Format
from eeio_parsers.found import (
    KIB,
    FoundPhase,
    FoundReport,
    count,
    figure,
    size,
)
from eeio_parsers.rules import Rules

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
    if blocks is None:
        return None
    return _in_blocks(options, blocks)


def _in_blocks(options: Mapping[str, str], blocks: int) -> int | None:
    bs = options.get("bs", "512")
    length = size(bs, 1000 if bs[-1:] == "B" else KIB)
    if length is None:
        return None
    return blocks * length


def _may_be_of(options: Mapping[str, str], moved: int) -> bool:
    """Whether a copy of so many bytes may be of a command with these options."""
    planned = _planned(options)
    return planned is None or moved <= 1.001 * planned


def _operation(options: Mapping[str, str]) -> str | None:
    """Without `of` it writes into a pipe, and from such a device to /dev/null it moves nothing."""
    made = options.get("if") in ("/dev/zero", "/dev/random", "/dev/urandom")
    if "of" not in options or made == (options["of"] == "/dev/null"):
        return None
    if made:
        return "write"
    # Without `if` it reads a pipe: what fills that is not known.
    if "if" in options:
        return "read"
    return None


def _is_direct(options: Mapping[str, str]) -> bool:
    return "direct" in options.get("oflag", "") + options.get("iflag", "")


_OWN_LINE = r"[^\n]*\d\+\d{1,20} [^\n]*\n|[^\n]* copied, [^\n]*\n|[ \t]*\n"
_COMMAND_ABOVE = re.compile(rf"^([^\n]*\bdd[ \t][^\n]*)\n(?:{_OWN_LINE})*\Z", re.M)
"""A command right above dd's own lines (and those of its progress), behind a prompt or the `+` of
a shell."""
_COMMAND = re.compile(r"\bdd[ \t]+([^;|&]*\b[io]f=[^;|&]*)")
_LOOP = re.compile(r"\b(?:for|while|until)\b.*;\s*do\b")
_ONLY_OWN = re.compile(rf"(?:{_OWN_LINE})*")
_OPTION = re.compile(r"\b(if|of|bs|count|oflag|iflag|conv)=([^\s;|&<>]{1,300})")
_SHELL_MARKS = re.compile("[\"'`)]")
_MOST_ABOVE = 2000


def _block_bytes(bs: str) -> int | None:
    """Of `bs=`: `1M` is binary, `1MB` is not (dd(1))."""
    return size(bs, 1000 if bs[-1:] == "B" else KIB)


def _options(above: str, moved: int) -> dict[str, str]:
    """Of the command above a copy; none if it is not there, or copies less than `moved` bytes."""
    line = _COMMAND_ABOVE.search(above[-_MOST_ABOVE:])
    commands = []
    if line:
        commands = _COMMAND.findall(line[1])
    if len(commands) != 1:
        return {}
    options = dict(_OPTION.findall(_SHELL_MARKS.sub("", commands[0])))
    if _may_be_of(options, moved):
        return options
    return {}


def read_text(text: str) -> Iterator[FoundReport]:
    """One report for each copy. dd reports neither direction nor options; its command line, if the
    file has it right above, does."""
    copies, begin = list(TEXT.finditer(text)), 0
    loop = ""
    for number, copy in enumerate(copies):
        above, (moved, seconds) = text[begin : copy.start()], _amounts(copy)
        if number + 1 < len(copies):
            following = copies[number + 1]
            all_bytes, all_s = _amounts(following)
            is_progress = _is_progress(text[copy.end() : following.start()], above)
            if is_progress and moved <= all_bytes and seconds <= all_s:
                continue  # of the same copy, which ends later
        if line := _COMMAND_ABOVE.search(above[-_MOST_ABOVE:]):
            loop = line[0] if _LOOP.search(line[1]) else ""
        elif not _ONLY_OWN.fullmatch(above.partition("\n")[2]):
            loop = ""
        # A loop has an output for each copy.
        options = _options(loop or above, moved)
        bs = options.get("bs", "")
        phase = FoundPhase(
            name="dd",
            operation=_operation(options),
            access_pattern="sequential",
            group=str(number),
            request_bytes=_block_bytes(bs) if bs else None,
            direct=_is_direct(options) if options else None,
            jobs=1,
            bytes=moved,
            runtime_s=seconds,
            bandwidth_bytes_per_s=moved / seconds if seconds else None,
            options={**options, "bytes": str(moved)},
        )
        notes: tuple[str, ...] = ()
        if not _RECORDS.search(above[-_MOST_ABOVE:]):
            notes = (_NO_RECORDS,)
        yield FoundReport((phase,), begins_at=copy.start(), notes=notes)
        begin = copy.end()


_NO_RECORDS = "no line `records in` above it: it may be dd's progress, and not its end"


RULES = {"dd": Rules()}
FORMATS = (Format("dd", "text", read_text, begins=TEXT, prepares_others=True),)
