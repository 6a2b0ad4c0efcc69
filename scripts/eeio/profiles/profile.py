"""One test profile: its files, its presets, its installation."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eeio.errors import RefusedError
from eeio.paths import install_root, search_path
from eeio_limits import LimitError, inputs
from eeio_limits.names import LONGEST_NAME
from eeio_limits.quantities import FRACTION, PAUSE, shortened
from eeio_results import documents
from eeio_results.errors import EeioError
from eeio_results.record import Tool

INSTALL_TIMEOUT_S = 900
# Keys of presets.conf that speak to the plan, not to the profile's executable.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_FORECAST_KEYS = (
    "passes_written", "memory_multiple", "footprint", "footprint_each", "each_s",
    "parallel_pause_s", "grows",
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """A profile folder such as `test-profiles/eeio-fio-1.0.0`."""

    folder: Path
    title: str
    version: str
    presets: Mapping[str, Mapping[str, str]]

    @property
    def identifier(self) -> str:
        """Name with version: `eeio-fio-1.0.0`."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The executable that install.sh makes: `eeio-fio`."""
        return self.identifier.rpartition("-")[0]

    @property
    def tool(self) -> str:
        """The parser's name: `fio`."""
        return self.name.removeprefix("eeio-")

    @property
    def install_dir(self) -> Path:
        return install_root() / self.identifier

    def preset(self, preset: str) -> Mapping[str, str]:
        """What the preset decides for this profile (`file_size`, `runtime_s`, ...)."""
        try:
            return self.presets[preset]
        except KeyError:
            raise RefusedError(
                f"{self.folder / 'presets.conf'}: no preset {preset!r}; "
                f"it has {', '.join(sorted(self.presets)) or 'none'}"
            ) from None

    def preset_factors(self, preset: str, work_bytes: int | None = None) -> dict[str, str]:
        """Of those the factors of an experiment: without what speaks to the plan alone.

        With `work_bytes` a tool that moves a file moves that much, and no time ends it before; one
        that has no file of a chosen size keeps what its preset says.
        """
        factors = {k: v for k, v in self.preset(preset).items() if k not in _FORECAST_KEYS}
        if work_bytes is None or "file_size" not in factors:
            return factors
        fixed = {"file_size": str(work_bytes), "runtime_s": "0"}
        return {key: fixed.get(key, value) for key, value in factors.items()}


def find(identifier: str) -> Profile:
    """The profile of that name and version, from the search path."""
    folders = search_path("test-profiles")
    # It may come from a file of others.
    if len(identifier) > LONGEST_NAME or not _IDENTIFIER.fullmatch(identifier):
        raise RefusedError(f"{shortened(identifier)} is no name of a test profile")
    for folder in folders:
        if (folder / identifier / "test-definition.xml").is_file():
            return load(folder / identifier)
    raise RefusedError(
        f"no test profile {identifier} in {', '.join(map(str, folders))}; `eeio list` shows them"
    )


def available() -> dict[str, Path]:
    """Name -> folder of every profile on the search path, by name; the first folder that has one
    wins. Not read yet: a damaged one must not hide the others."""
    found: dict[str, Path] = {}
    for folder in search_path("test-profiles"):
        for definition in sorted(folder.glob("*/test-definition.xml")):
            found.setdefault(definition.parent.name, definition.parent)
    return dict(sorted(found.items()))


def load(folder: Path) -> Profile:
    """The profile in `folder`."""
    definition = folder / "test-definition.xml"
    try:
        root = documents.read_xml(definition)
    except (OSError, LimitError) as error:
        raise RefusedError(f"{definition}: not a PTS test definition: {error}") from error
    return Profile(
        folder=folder,
        title=root.findtext("TestInformation/Title") or folder.name,
        version=root.findtext("TestProfile/Version") or "",
        presets=_read_presets(folder / "presets.conf"),
    )


def _read_presets(path: Path) -> dict[str, dict[str, str]]:
    """Lines `preset key=value ...`; `#` starts a comment."""
    if not path.is_file():
        return {}
    presets: dict[str, dict[str, str]] = {}
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES)
    except (OSError, LimitError) as error:
        raise RefusedError(f"{path}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        pairs = [word.partition("=") for word in words[1:]]
        if any(not separator for _, separator, _ in pairs):
            raise RefusedError(
                f"{path}:{number}: expected `preset key=value ...`, found {line!r:.100}"
            )
        preset = presets[words[0]] = {key: value for key, _, value in pairs}
        try:
            for name, quantity in _NUMBERS.items():
                if name in preset:
                    quantity.of_text(preset[name], name)
        except LimitError as error:
            raise RefusedError(f"{path}:{number}: {error}") from error
    return presets


# Of a preset: how often a run writes its file, a pause of runs with several processes, how much
# larger than memory a file is, and what each of many files takes.
_NUMBERS = {
    "passes_written": FRACTION, "parallel_pause_s": PAUSE, "memory_multiple": FRACTION,
    "each_s": PAUSE,
}  # fmt: skip


def script_environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment PTS gives a profile's scripts: the caller's own, HOME the install folder."""
    return {**os.environ, "HOME": str(home), "LC_ALL": "C", **extra}


def is_installed(profile: Profile) -> bool:
    """Whether install.sh has ended well, the executable is there, no older than the profile that
    made it, and for the tool that would be found today: not for one that was upgraded since, or
    gave way to another."""
    executable = profile.install_dir / profile.name
    if not os.access(executable, os.X_OK):
        return False
    # What failed may have left its executable: the tool may have come since.
    with contextlib.suppress(FileNotFoundError):
        if (profile.install_dir / "install-exit-status").read_text(errors="replace").strip() != "0":
            return False
    newest = max(path.stat().st_mtime for path in profile.folder.iterdir() if path.is_file())
    if executable.stat().st_mtime < newest:
        return False
    recorded = _tool_conf(profile)
    return recorded is None or _is_todays(recorded)


def _is_todays(recorded: Mapping[str, str]) -> bool:
    """Whether tool.conf, as install.sh wrote it, tells the tool that it would find again."""
    settings = {key: value for key, value in recorded.items() if key.startswith("EEIO_")}
    if any(os.environ.get(key, "") != value for key, value in settings.items()):
        return False
    path = Path(recorded.get("path", ""))
    # A setting outranks PATH; without one another module or package may be first there now.
    if recorded.get("source") == "system" and not any(settings.values()):
        in_path = shutil.which(path.name)
        if in_path is not None and Path(in_path) != path:
            return False
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == recorded.get("sha256")
    except OSError:
        return False


def install(profile: Profile) -> None:
    """Runs install.sh as PTS does; EeioError with its last words when it fails."""
    home = profile.install_dir
    home.mkdir(parents=True, exist_ok=True)
    # A leftover of an older version must not pass for a fresh installation.
    with contextlib.suppress(FileNotFoundError):
        (home / profile.name).unlink()
    try:
        done = subprocess.run(
            ["bash", str(profile.folder / "install.sh"), f"{home}/"],
            cwd=home,
            env=script_environment(home, {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EeioError(
            f"{profile.identifier}: install.sh took more than {INSTALL_TIMEOUT_S} s"
        ) from error
    if done.returncode != 0 or not os.access(home / profile.name, os.X_OK):
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        raise EeioError(
            f"{profile.identifier} cannot be installed: {lines[-1] if lines else 'no output'}"
        )


def installed_tool(profile: Profile) -> Tool | None:
    """What install.sh recorded of the tool in tool.conf; None when the profile has no tool."""
    values = _tool_conf(profile)
    if values is None:
        return None
    return Tool(
        name=profile.tool,
        path=values.get("path", ""),
        version=values.get("version", ""),
        sha256=values.get("sha256", ""),
        source=values.get("source", ""),
    )


def _tool_conf(profile: Profile) -> dict[str, str] | None:
    path = profile.install_dir / "tool.conf"
    if not path.is_file():
        return None
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES, errors="replace")
    except LimitError as error:
        raise EeioError(f"{path}: {error}; install the profile again") from error
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, separator, value in pairs if separator}
