"""One input made of another: seeded, so that the same numbers give the same input again."""

import gzip
import json
import random
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Files = Mapping[str, bytes]
"""An input: what each of its files holds."""

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_EVIL_NUMBERS = (
    b"nan", b"NaN", b"inf", b"-Infinity", b"-1", b"0", b"-0.0", b"1e999", b"-1e308", b"1e-320",
    b"true", b"null", b"0x10", b"1_000", b"9" * 20, b"9" * 400, b"9" * 5000, b"2147483648",
    b"18446744073709551616", b"1.2.3", b"+5", b"1,5", b"4.5", b"1e5", b"\xd9\xa3",
)  # fmt: skip
_EVIL_BYTES = (
    b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\x1b[2J", b"\x9b31m", b"\x07", b"\r", b"\x85",
    b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\xff\xfe", b"'", b'"', b"\\", b"&", b"<",
    b"=cmd()", b"../", b"/", b"%", b"\t", b";", b",", b":", b"\n",
)  # fmt: skip
_OPENERS = (b"[", b"{", b'{"a":', b"<a>", b"(", b"- ", b"[[", b"&a [*a, ", b"<!ENTITY a 'b'>")
_EVIL_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 4.5, 10**400, 10**19, -(10**30), 1e300, "", "x", "\0", "\ud800",
    "\x1b[31m", "../../x", "2001-99-99", "9" * 5000, [], {}, [[]], [None], {"a": 1}, "nan", "1e999",
)  # fmt: skip
# Not every input is long: these cost the most time.
_LONG_SHARE = 0.02
_LONGEST = 200_000
_MOST_BYTES = 400_000


def mutated(files: Files, others: Sequence[Files], draw: random.Random) -> dict[str, bytes]:
    """`files` with one to three faults, most of them in one file; `others` are of its kind."""
    made = dict(files)
    names = sorted(made)
    name = draw.choice(names)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if draw.random() < 0.1:
            name = draw.choice(names)
        donors = [other[name] for other in others if name in other]
        made[name] = _fault(name, made[name], donors, draw)[:_MOST_BYTES]
    return made


def _fault(name: str, data: bytes, donors: Sequence[bytes], draw: random.Random) -> bytes:
    if name.endswith(".gz") and draw.random() < 0.8:
        try:
            plain = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return _text_fault(data, donors, draw)
        plain_donors = [gzip.decompress(donor) for donor in donors]
        return gzip.compress(_fault(name[:-3], plain, plain_donors, draw), compresslevel=1)
    if name.endswith((".json", ".jsonl")) and draw.random() < 0.7:
        changed = _json_fault(data, draw)
        if changed is not None:
            return changed
    return _text_fault(data, donors, draw)


def _text_fault(data: bytes, donors: Sequence[bytes], draw: random.Random) -> bytes:
    if draw.random() < _LONG_SHARE:
        return draw.choice(_LONG)(data, draw)
    if donors and draw.random() < 0.1:
        return _splice(data, draw.choice(donors), draw)
    return draw.choice(_SHORT)(data, draw)


def _json_fault(data: bytes, draw: random.Random) -> bytes | None:
    """A value of another kind somewhere, a key less or more; None if it is no JSON (any more)."""
    lines = data.split(b"\n") if data.count(b"\n{") else [data]
    place = draw.randrange(len(lines))
    try:
        body = json.loads(lines[place])
    except (ValueError, RecursionError):
        return None
    holders = _holders(body)
    if not holders:
        return None
    holder = draw.choice(holders)
    keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return None
    key = draw.choice(keys)
    action = draw.random()
    if action < 0.12:
        del holder[key]
    elif action < 0.2:
        other = draw.choice(keys)
        holder[key], holder[other] = holder[other], holder[key]
    elif action < 0.25 and isinstance(holder, dict):
        holder[draw.choice(("extra", "", "a" * 300, "\x1b[2J"))] = draw.choice(_EVIL_VALUES)
    elif action < 0.3 and isinstance(holder, list):
        holder += holder[: draw.randrange(1, 20)]
    elif action < 0.35:
        holder[key] = _deep(draw.choice((5, 40, 200, 900)), draw)
    elif action < 0.4:
        holder[key] = [holder[key]]
    elif action < 0.45:
        other = draw.choice(holders)
        values = list(other.values()) if isinstance(other, dict) else other
        # A copy, for it may hold what it is put into.
        holder[key] = json.loads(json.dumps(draw.choice(values)))
    else:
        holder[key] = draw.choice(_EVIL_VALUES)
    try:
        text = json.dumps(body)
    except (ValueError, RecursionError):  # it was deep already
        return None
    if draw.random() < 0.15:
        text = _NUMBER_TEXT.sub(
            lambda match: draw.choice(("NaN", "Infinity", "1e999", "-5", match[0])), text, count=3
        )
    lines[place] = text.encode()
    return b"\n".join(lines)


_NUMBER_TEXT = re.compile(r"(?<=[:\[ ])-?\d+(?:\.\d+)?(?=[,\]}])")


def _deep(depth: int, draw: random.Random) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if draw.random() < 0.5 else {"a": value}
    return value


def _holders(body: Any) -> list[Any]:
    found, level = [], [body]
    while level:
        level = [part for part in level if isinstance(part, dict | list) and part]
        found += level
        level = [v for part in level for v in (part.values() if isinstance(part, dict) else part)]
    return found


def _at(data: bytes, draw: random.Random) -> int:
    return draw.randrange(len(data) + 1)


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(min(len(data), draw.choice((1, 1, 2, 8)))):
        changed[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(changed)


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: _at(data, draw)]


def _duplicate(data: bytes, draw: random.Random) -> bytes:
    begin = _at(data, draw)
    piece = data[begin : begin + draw.choice((1, 8, 60, 400))]
    place = _at(data, draw)
    return data[:place] + piece * draw.choice((1, 1, 2, 10)) + data[place:]


def _delete(data: bytes, draw: random.Random) -> bytes:
    begin = _at(data, draw)
    return data[:begin] + data[begin + draw.choice((1, 4, 30, 300)) :]


def _splice(data: bytes, donor: bytes, draw: random.Random) -> bytes:
    return data[: _at(data, draw)] + donor[_at(donor, draw) :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    place = _at(data, draw)
    return data[:place] + draw.choice(_EVIL_BYTES) * draw.choice((1, 1, 1, 5)) + data[place:]


def _number(data: bytes, draw: random.Random) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return _insert(data, draw)
    match = draw.choice(found)
    number = draw.choice(_EVIL_NUMBERS) if draw.random() < 0.6 else _scaled(match[0], draw)
    return data[: match.start()] + number + data[match.end() :]


def _scaled(number: bytes, draw: random.Random) -> bytes:
    """A number of the same form and another size, which only other numbers can contradict."""
    value = float(number) * draw.choice((0.001, 0.1, 0.3, 0.9, 1.1, 3.3, 10.0, 1000.0))
    return f"{value:.6f}".encode() if b"." in number else f"{value:.0f}".encode()


def _lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    action = draw.randrange(4)
    if action == 0:
        lines[first], lines[second] = lines[second], lines[first]
    elif action == 1:
        lines.insert(second, lines[first])
    elif action == 2:
        del lines[first]
    else:
        lines[first] = lines[first].replace(b" ", draw.choice((b"", b"  ", b"\t", b",")))
    return b"\n".join(lines)


def _word(data: bytes, draw: random.Random) -> bytes:
    """One word of the file in place of another."""
    found = list(re.finditer(rb"[\w.]+", data[:20_000]))
    if len(found) < 2:
        return _insert(data, draw)
    one, other = draw.choice(found), draw.choice(found)
    return data[: one.start()] + other[0] + data[one.end() :]


def _nest(data: bytes, draw: random.Random) -> bytes:
    place = _at(data, draw)
    opener = draw.choice(_OPENERS)
    return data[:place] + opener * draw.choice((2, 20, 200, 2000)) + data[place:]


def _empty(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"", b"\n", b"\xef\xbb\xbf", b"\0", b" ", b"[]", b"{}", b"null"))


_SHORT: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _truncate, _duplicate, _delete, _insert, _number, _number, _number, _number,
    _lines, _lines, _word, _word, _nest, _empty,
)  # fmt: skip


def _long_run(data: bytes, draw: random.Random) -> bytes:
    """One character very often, where a file has it once."""
    place = draw.randrange(len(data)) if data else 0
    character = data[place : place + 1] or b"a"
    if draw.random() < 0.5:
        character = draw.choice((b" ", b"0", b"9", b"a", b".", b"\t", b",", b"(", b"\n", b"\\"))
    return data[:place] + character * draw.randrange(_LONGEST) + data[place:]


def _long_piece(data: bytes, draw: random.Random) -> bytes:
    """A piece of the file very often, without its line breaks or with them."""
    place = _at(data, draw)
    piece = data[place : place + draw.choice((2, 5, 12, 40))] or b"ab"
    if draw.random() < 0.7:
        piece = piece.replace(b"\n", b"")
    count = draw.randrange(_LONGEST) // max(1, len(piece))
    return data[:place] + piece * count + data[place:]


def _long_nest(data: bytes, draw: random.Random) -> bytes:
    place = _at(data, draw)
    opener = draw.choice(_OPENERS)
    return data[:place] + opener * (draw.randrange(_LONGEST) // len(opener)) + data[place:]


def _long_file(data: bytes, draw: random.Random) -> bytes:
    """The same lines again and again."""
    return (data + b"\n") * (draw.randrange(_LONGEST) // (len(data) + 1) + 1)


_LONG = (_long_run, _long_run, _long_piece, _long_piece, _long_nest, _long_file)
