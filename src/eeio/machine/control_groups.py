"""The control groups of this process and their parents, of both versions."""

from dataclasses import dataclass
from pathlib import Path

from eeio.machine.filesystem import Mount, mounts


@dataclass(frozen=True)
class Group:
    """A control group, by its name and its folder."""

    name: str
    folder: Path


def own_groups(root: Path = Path("/")) -> list[Group]:
    """Those of this process and their visible parents, in all hierarchies."""
    groups: dict[Path, Group] = {}
    own = (text_of(root / "proc/self/cgroup") or "").splitlines()
    for mount in mounts(root):
        for line in own:
            _, controllers, name = line.split(":", 2)
            if not _is_hierarchy(mount, controllers):
                continue
            top = root / str(mount.mount_point).lstrip("/")
            folder = top / name.lstrip("/")
            # A container may see only its part of the tree, under the name of the host.
            if not folder.is_dir():
                folder = top
            # Throttling in version 1 is flat: a parent's limit is not its children's.
            parents = folder.parents
            if "blkio" in controllers.split(","):
                parents = ()
            for each in (folder, *parents):
                groups[each] = Group(f"/{each.relative_to(top)}".replace("/.", "/"), each)
                if each == top:
                    break
    return list(groups.values())


def _is_hierarchy(mount: Mount, controllers: str) -> bool:
    if mount.filesystem == "cgroup2":
        return not controllers
    names = set(controllers.split(","))
    return mount.filesystem == "cgroup" and names <= set(mount.options.split(","))


def text_of(path: Path) -> str | None:
    """The text of a file of the kernel; None without one."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
