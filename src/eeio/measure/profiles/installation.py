"""Installed profiles: a folder each, complete before anybody uses it and never written afterwards.

docs/decisions/0037-installed-programs.md says why.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import EeioError, LimitError
from eeio.files import inputs
from eeio.files.trust import hand_over, make_folder, why_untrusted
from eeio.measure.profiles import complete
from eeio.measure.profiles.profile import Profile, script_environment
from eeio.paths import check_definition, install_root
from eeio.record.run import Tool

INSTALL_TIMEOUT_S = 900
_RECORD = "installed.json"
# Files that a run of the profile or its installation writes.
_NOT_PROGRAM = re.compile(
    rf".*\.log|{re.escape(_RECORD)}|tool\.conf|(install|test)-exit-status|\.in-use"
)
# Run from the installation, so that an edited checkout does not change a campaign.
_SCRIPTS = ("pre.sh", "post.sh")
_IN_USE = ".in-use"
_UNUSED_S = 30 * 86400.0


@dataclass(frozen=True)
class Installation:
    """One complete installation; `sha256` is of the files that a run executes, tool included."""

    profile: Profile
    home: Path
    sha256: str
    files: Mapping[str, str]
    """Path, relative to `home` unless it is the tool's -> SHA-256."""

    @property
    def executable(self) -> Path:
        return self.home / self.profile.name

    def script(self, name: str) -> Path | None:
        """`pre.sh` or `post.sh`, if the profile has it."""
        if name not in self.files:
            return None
        return self.home / name

    @property
    def tool(self) -> Tool | None:
        """Contents of tool.conf, written by install.sh; None if the profile has no tool."""
        values = _tool_conf(self.home)
        if values is None:
            return None
        return Tool(
            name=self.profile.tool,
            path=values.get("path", ""),
            version=values.get("version", ""),
            sha256=values.get("sha256", ""),
            source=values.get("source", ""),
        )


class Program:
    """Whether an installation is still what it was when a campaign began. It is not deleted while
    this is open."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self._observed = {name: _signature(self._path(name)) for name in installation.files}
        self._lock = os.open(installation.home / _IN_USE, os.O_RDONLY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # not every file system has locks, nor every user rights
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.utime(installation.home / _IN_USE)

    def close(self) -> None:
        os.close(self._lock)

    def why_changed(self) -> str | None:
        """Which file is gone or is another one than when it was installed."""
        for name, sha256 in self.installation.files.items():
            path = self._path(name)
            signature = _signature(path)
            if signature is None:
                return f"{path} has vanished"
            if signature != self._observed[name]:
                try:
                    now = _sha256(path)
                except OSError as error:
                    return f"{path}: {error.strerror}"
                if now != sha256:
                    return f"{path} has changed"
                self._observed[name] = signature
        return None

    def _path(self, name: str) -> Path:
        return self.installation.home / name  # an absolute name stays as it is


def find(profile: Profile) -> Installation | None:
    """The installation that runs of the profile use now: of these files of the profile, and of the
    tool that install.sh would find today. None if there is none."""
    wanted = _of_profile(profile)
    for home in sorted(_folders(profile, wanted), key=_number, reverse=True):
        if why_untrusted(home) is None and (installed := _read(profile, home)) is not None:
            return installed
    return None


def install(profile: Profile) -> Installation:
    """That installation, made if there is none; EeioError with the last words of install.sh if it
    fails. A second process that installs the same profile waits for the first."""
    root = install_root()
    if (installed := find(profile)) is not None:
        return installed
    make_folder(root)
    if (reason := why_untrusted(root)) is not None:
        raise EeioError(f"{root}: programs there are not run as root: {reason}. Change its owner")
    check_definition(profile.folder)
    with _locked(root / f".{profile.identifier}.lock"):
        return find(profile) or _install(profile, root)


def _install(profile: Profile, root: Path) -> Installation:
    _remove_unused(profile, root)
    wanted = _of_profile(profile)
    # Counted for these files only: nodes that have a folder each then have the same names.
    number = max(map(_number, _folders(profile, wanted)), default=0) + 1
    home = root / f"{profile.identifier}.{wanted}.{number}"
    make_folder(home)
    try:
        with complete.folder_of(profile.folder) as folder:
            done = subprocess.run(
                ["bash", str(folder / "install.sh"), f"{home}/"],
                cwd=home,
                env=script_environment(home, {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        if done.returncode != 0 or not os.access(home / profile.name, os.X_OK):
            lines = done.stdout.decode(errors="replace").strip().splitlines()
            message = "no output"
            if lines:
                message = lines[-1]
            raise EeioError(f"{profile.identifier} cannot be installed: {message}")
        for name in _SCRIPTS:
            if name in profile.files:
                shutil.copy(profile.files[name], home / name)
        return _recorded(profile, home)
    except subprocess.TimeoutExpired as error:
        raise EeioError(
            f"{profile.identifier}: install.sh took more than {INSTALL_TIMEOUT_S} s"
        ) from error
    finally:
        if not (home / _RECORD).exists():
            shutil.rmtree(home, ignore_errors=True)


def _recorded(profile: Profile, home: Path) -> Installation:
    """Completes an installation with its record."""
    files = {
        path.name: _sha256(path)
        for path in sorted(home.iterdir())
        if path.is_file() and not _NOT_PROGRAM.fullmatch(path.name)
    }
    tool = _tool_conf(home) or {}
    if (path := tool.get("path")) and Path(path).is_file():
        if (reason := why_untrusted(Path(path))) is not None:
            raise EeioError(
                f"{path} is not run as root: {reason}. Repair: install {path} /usr/local/bin/"
            )
        files[path] = _sha256(Path(path))
    (home / _IN_USE).touch()
    new = home / f"{_RECORD}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump({"schema_version": 1, "files": files}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(home / _RECORD)
    return Installation(profile, home, _of_files(files), files)


def _read(profile: Profile, home: Path) -> Installation | None:
    """The installation in a folder; None if it is incomplete, changed, or of another tool."""
    try:
        body = inputs.read_json(home / _RECORD)
        files = {str(name): str(sha256) for name, sha256 in body["files"].items()}
        if any(_sha256(home / name) != sha256 for name, sha256 in files.items()):
            return None
    except (OSError, LimitError, KeyError, TypeError, AttributeError):
        return None
    if not os.access(home / profile.name, os.X_OK):
        return None
    tool = _tool_conf(home)
    if tool is not None and not _is_todays(tool, files):
        return None
    if tool is not None and why_untrusted(Path(tool.get("path", ""))) is not None:
        return None
    return Installation(profile, home, _of_files(files), files)


def _is_todays(tool: Mapping[str, str], files: Mapping[str, str]) -> bool:
    """Whether install.sh would find the tool of a tool.conf again; `files` are those known to be
    unchanged."""
    settings = {key: value for key, value in tool.items() if key.startswith("EEIO_")}
    if any(os.environ.get(key, "") != value for key, value in settings.items()):
        return False
    path = Path(tool.get("path", ""))
    # A setting outranks PATH; without one another module or package may be first there now.
    if tool.get("source") == "system" and not any(settings.values()):
        in_path = shutil.which(path.name)
        if in_path is not None and Path(in_path) != path:
            return False
    return files.get(str(path)) == tool.get("sha256")


def _remove_unused(profile: Profile, root: Path) -> None:
    """Deletes installations of the profile that are incomplete, or of a tool that is gone, or were
    not used for weeks; none that a campaign uses."""
    wanted = _of_profile(profile)
    for home in root.glob(f"{profile.identifier}.*.*"):
        with contextlib.suppress(OSError):
            if not (home / _RECORD).exists():
                shutil.rmtree(home, ignore_errors=True)
                continue
            # Another checkout may have other files of this profile, and need them again.
            is_old = time.time() - (home / _IN_USE).stat().st_mtime > _UNUSED_S
            if not is_old and home.name.split(".")[-2] != wanted:
                continue
            descriptor = os.open(home / _IN_USE, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(home, ignore_errors=True)
            finally:
                os.close(descriptor)


def _folders(profile: Profile, wanted: str) -> list[Path]:
    return list(install_root().glob(f"{profile.identifier}.{wanted}.*"))


def _number(home: Path) -> int:
    last = home.name.rpartition(".")[2]
    if not last.isdecimal():
        return 0
    return int(last)


def _of_profile(profile: Profile) -> str:
    """Short hash of the complete profile's files."""
    return _of_files({name: _sha256(path) for name, path in profile.files.items()})[:12]


def _of_files(files: Mapping[str, str]) -> str:
    text = "".join(f"{sha256} {Path(name).name}\n" for name, sha256 in sorted(files.items()))
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _signature(path: Path) -> tuple[int, ...] | None:
    """Differs if the file was written or replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        hand_over(descriptor, path.parent)
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _tool_conf(home: Path) -> dict[str, str] | None:
    path = home / "tool.conf"
    if not path.is_file():
        return None
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES, errors="replace")
    except LimitError as error:
        raise EeioError(f"{path}: {error}; install the profile again") from error
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, separator, value in pairs if separator}
