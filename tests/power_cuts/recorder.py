"""Runs one eeio and records what it does to the files of a folder, in order.

    python -m tests.power_cuts.recorder FOLDER LOG WORDS...

LOG gets the operations as Python's pickle. What other programs write into the folder is not
recorded: no file of the store is theirs.
"""

import builtins
import io
import os
import pickle
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eeio import cli
from eeio.record.run import Run
from eeio.record.store import Store
from tests.power_cuts.operations import ROOT, Op


class Recorder:
    """The operations on what is below `root`, which is node 0."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.ops: list[Op] = []
        self._nodes: dict[str, int] = {self.root: ROOT}
        self._count = 0

    def path(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The absolute path if it is below the root."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        place = Path(os.fsdecode(path))
        if dir_fd is not None:
            place = Path(f"/proc/self/fd/{dir_fd}").readlink() / place
        text = str(place.absolute())
        return text if text.startswith(self.root + "/") else None

    def node(self, path: str) -> int:
        """Of a file or folder; one that was not seen to be made gets a number now."""
        if path not in self._nodes:
            self._count += 1
            self._nodes[path] = self._count
        return self._nodes[path]

    def place(self, path: str) -> tuple[int, str]:
        folder, name = os.path.split(path)
        return self.node(folder), name

    def made(self, kind: str, path: str) -> int:
        self._nodes.pop(path, None)
        node = self.node(path)
        folder, name = self.place(path)
        self.ops.append(Op(kind, node, folder, name))
        return node

    def renamed(self, source: str, target: str) -> None:
        node, was = self.node(source), self.place(source)
        below = {p: n for p, n in self._nodes.items() if p == source or p.startswith(source + "/")}
        for path in below:
            del self._nodes[path]
        self._nodes.update({target + p[len(source) :]: n for p, n in below.items()})
        folder, name = self.place(target)
        self.ops.append(Op("rename", node, folder, name, was=was))

    def removed(self, path: str) -> None:
        folder, name = self.place(path)
        self.ops.append(Op("unlink", self.node(path), folder, name))
        self._nodes.pop(path, None)

    def synced(self, path: str) -> None:
        self.ops.append(Op("fsync", self.node(path)))


class _File(io.FileIO):
    """A file whose writes are recorded."""

    recorder: Recorder
    node: int

    def write(self, data: Any) -> int:
        count = super().write(data)
        place = self.tell() - count
        written = bytes(data)[:count]
        self.recorder.ops.append(Op("write", self.node, offset=place, data=written))
        return count

    def truncate(self, size: int | None = None) -> int:
        result = super().truncate(size)
        self.recorder.ops.append(Op("truncate", self.node, size=result))
        return result


def _opener(recorder: Recorder) -> Callable[..., Any]:
    plain = io.open

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None, *others: Any, **more: Any,
    ) -> Any:  # fmt: skip
        path = recorder.path(file) if set("wax+") & set(mode) else None
        if path is None or others or more.get("opener"):
            return plain(file, mode, buffering, encoding, errors, newline, *others, **more)
        there = os.path.lexists(path)
        raw = _File(path, mode.replace("b", "").replace("t", ""))
        raw.recorder = recorder
        raw.node = recorder.node(path) if there else recorder.made("create", path)
        if there and "w" in mode:
            recorder.ops.append(Op("truncate", raw.node))
        if buffering == 0:
            return raw
        buffer: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffer
        return io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)

    return opened


def patch(recorder: Recorder) -> None:
    """From now on this process records."""
    opened: Any = _opener(recorder)
    io.open = opened
    builtins.open = opened
    plain_open, plain_fsync, plain_mkdir = os.open, os.fsync, os.mkdir
    plain_append = Store.append_all

    def open_(path: Any, flags: int, *others: Any, dir_fd: int | None = None, **more: Any) -> int:
        place = recorder.path(path, dir_fd)
        new = place is not None and bool(flags & os.O_CREAT) and not os.path.lexists(place)
        descriptor = plain_open(path, flags, *others, dir_fd=dir_fd, **more)
        if new and place is not None:
            recorder.made("create", place)
        return descriptor

    def fsync(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        plain_fsync(descriptor)
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if path == recorder.root or recorder.path(path):
            recorder.synced(path)

    def mkdir(path: Any, *others: Any, dir_fd: int | None = None, **more: Any) -> None:
        place = recorder.path(path, dir_fd)
        plain_mkdir(path, *others, dir_fd=dir_fd, **more)
        if place is not None:
            recorder.made("mkdir", place)

    def renaming(plain: Any) -> Any:
        def rename(source: Any, target: Any, **more: Any) -> None:
            plain(source, target, **more)
            old, new = recorder.path(source), recorder.path(target)
            if old is not None and new is not None:
                recorder.renamed(old, new)

        return rename

    def removing(plain: Any) -> Any:
        def remove(path: Any, *, dir_fd: int | None = None) -> None:
            place = recorder.path(path, dir_fd)
            plain(path, dir_fd=dir_fd)
            if place is not None:
                recorder.removed(place)

        return remove

    def append_all(self: Store, runs: Sequence[Run]) -> None:
        plain_append(self, runs)
        indices = tuple(run.order_index for run in runs)
        recorder.ops.append(Op("stored", runs=indices))

    changed: dict[str, Any] = {
        "open": open_, "fsync": fsync, "mkdir": mkdir,
        **{name: renaming(getattr(os, name)) for name in ("rename", "replace")},
        **{name: removing(getattr(os, name)) for name in ("unlink", "remove", "rmdir")},
    }  # fmt: skip
    for name, function in changed.items():
        # shutil.rmtree looks at these to choose its way.
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if getattr(os, name) in known:
                known.add(function)
        setattr(os, name, function)
    Store.append_all = append_all  # type: ignore[method-assign]


def main(arguments: Sequence[str]) -> int:
    folder, log, *options = arguments
    recorder = Recorder(Path(folder))
    for path in sorted(Path(folder).rglob("*")):  # what earlier ones left
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        node = recorder.made("mkdir" if is_folder else "create", str(path))
        if not is_folder:
            recorder.ops.append(Op("write", node, data=path.read_bytes()))
        recorder.ops += [Op("fsync", node), Op("fsync", recorder.node(str(path.parent)))]
    begin = len(recorder.ops)
    patch(recorder)
    try:
        return cli.main(options)
    finally:
        with io.FileIO(log, "w") as file:
            file.write(pickle.dumps((begin, recorder.ops)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
