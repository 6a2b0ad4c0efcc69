"""Rebuilds what a journalling file system may leave of recorded operations after a power cut.

- Data that were not synced are there, lost, cut off or zeros.
- Entries of a folder (new files, renames, removals) that were not synced are there or lost. In half
  of the cuts they are lost from the end over all folders, and any sync keeps all before it (ext4,
  XFS); else from the end of each folder, and its sync keeps its entries and the way to it (Btrfs).
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.power_cuts.operations import ROOT, Op

_ENTRY = ("create", "mkdir", "rename", "unlink")
_BLOCK = 4096


def rebuild(ops: Sequence[Op], cut: int, folder: Path, draw: random.Random) -> None:
    """Writes what is left of the first `cut` operations into `folder`."""
    done = ops[:cut]
    kept = _ordered(done, draw) if draw.random() < 0.5 else _by_folder(done, draw)
    entries: dict[int, dict[str, int]] = defaultdict(dict)
    folders = {ROOT}
    for op in kept:
        if op.kind == "unlink":
            entries[op.folder].pop(op.name, None)
            continue
        if op.kind == "mkdir":
            folders.add(op.node)
        if op.was is not None and entries[op.was[0]].get(op.was[1]) == op.node:
            del entries[op.was[0]][op.was[1]]
        entries[op.folder][op.name] = op.node
    made = {op.node for op in done if op.kind == "mkdir"}

    def lay_out(node: int, place: Path) -> None:
        for name, child in entries[node].items():
            if child in made:
                (place / name).mkdir()
                lay_out(child, place / name)
            else:
                (place / name).write_bytes(content(done, child, draw))

    lay_out(ROOT, folder)


def _ordered(done: Sequence[Op], draw: random.Random) -> list[Op]:
    synced = max((n for n, op in enumerate(done) if op.kind == "fsync"), default=0)
    until = draw.randint(synced, len(done))
    return [op for op in done[:until] if op.kind in _ENTRY]


def _by_folder(done: Sequence[Op], draw: random.Random) -> list[Op]:
    of_folder: dict[int, list[int]] = defaultdict(list)
    parent: dict[int, int] = {}
    safe: set[int] = set()
    for number, op in enumerate(done):
        if op.kind in _ENTRY:
            of_folder[op.folder].append(number)
            if op.was is not None and op.was[0] != op.folder:
                of_folder[op.was[0]].append(number)
            if op.kind != "unlink":
                parent[op.node] = op.folder
        elif op.kind == "fsync" and op.node in of_folder:
            safe.update(of_folder[op.node])
            node = op.node
            while node != ROOT and node in parent:
                above = of_folder[parent[node]]
                places = [n for n in above if done[n].node == node]
                safe.update(n for n in above if places and n <= places[-1])
                node = parent[node]
    kept = set(safe)
    lost: set[int] = set()
    for numbers in of_folder.values():
        unsafe = [number for number in numbers if number not in safe]
        lost.update(unsafe[draw.randint(0, len(unsafe)) :])
        kept.update(unsafe)
    return [done[number] for number in sorted(kept - lost)]


def content(done: Sequence[Op], node: int, draw: random.Random) -> bytes:
    """What a file has of its data."""
    own = [op for op in done if op.node == node and op.kind in ("write", "truncate", "fsync")]
    synced = max((n for n, op in enumerate(own, 1) if op.kind == "fsync"), default=0)
    stable, tail = _applied(b"", own[:synced]), own[synced:]
    complete = _applied(stable, tail)
    fate = draw.choice(("there", "lost", "cut", "zeros"))
    if not tail or fate == "there":
        return complete
    if fate == "lost":
        return stable
    if fate == "cut":
        count = draw.randrange(len(tail))
        last = tail[count]
        part = Op(
            last.kind, node, offset=last.offset, size=last.size,
            data=last.data[: draw.randint(0, len(last.data))],
        )  # fmt: skip
        return _applied(_applied(stable, tail[:count]), [part])
    filled = bytearray(complete)
    for op in tail:
        if op.kind == "write":
            first, last_byte = op.offset, op.offset + len(op.data)
            if draw.random() < 0.5:  # some of its blocks
                first = min(last_byte, max(first, draw.randint(first, last_byte) & -_BLOCK))
                last_byte = min(last_byte, first + _BLOCK * draw.randint(1, 3))
            filled[first:last_byte] = bytes(max(0, min(last_byte, len(filled)) - first))
    return bytes(filled)


def _applied(data: bytes, ops: Sequence[Op]) -> bytes:
    made = bytearray(data)
    for op in ops:
        if op.kind == "truncate":
            del made[op.size :]
            made.extend(bytes(op.size - len(made)))
        elif op.kind == "write":
            made.extend(bytes(max(0, op.offset - len(made))))
            made[op.offset : op.offset + len(op.data)] = op.data
    return bytes(made)
