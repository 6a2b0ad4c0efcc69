"""What the recorder writes and the replay reads."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Op:
    """One operation: create, mkdir, rename, unlink (also of folders), write, truncate, fsync; or
    stored: a run was reported as stored to whoever asked for it.

    `node` is the file or folder, `folder` and `name` where it is (of a rename: will be), `was`
    where a rename takes it from.
    """

    kind: str
    node: int = 0
    folder: int = 0
    name: str = ""
    was: tuple[int, str] | None = None
    offset: int = 0
    data: bytes = b""
    size: int = 0
    runs: tuple[int, ...] = ()


ROOT = 0
