"""Installs and runs a test profile as the Phoronix Test Suite and the runner do."""

import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eeio.measure.profiles import complete
from eeio.record.tools.capture import Capture, Stamp
from tests.processes import Done, check_code

PROFILES = Path(__file__).parents[2] / "test-profiles"
FOLDERS = sorted(path.parent for path in PROFILES.glob("*/test-definition.xml"))


def copy_of(profile: Path, folder: Path) -> Path:
    """The complete profile as real files in `folder`, far from the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in complete.files(profile).items():
        shutil.copy(path, folder / name)
    return folder


_READ = re.compile(
    r'(?:\$HOME|\$profile|\$\{0%/\*\})/([\w-]+\.(?:sh|awk|py|conf|c))\b|#include "(.+)"'
)


def missing_files(folder: Path) -> list[str]:
    """What the scripts and sources in a folder read, include or import, and is not in it."""
    optional = {"tool.sh", "tool.conf", "derived.sh"}
    missing = []
    for path in (path for path in folder.iterdir() if path.is_file()):
        text = path.read_text(errors="replace")
        read = {"".join(names) for names in _READ.findall(text)}
        read |= {"server.py"} if "\nimport server\n" in text else set()
        missing += [
            f"{path.name}: {name}" for name in read - optional if not (folder / name).exists()
        ]
    return missing


@dataclass
class Installed:
    """A profile, an install folder for it, and a directory for its test files."""

    name: str
    home: Path
    directory: Path
    profile: Path = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        source = PROFILES / f"eeio-{self.name}-1.0.0"
        self.profile = copy_of(source, self.home.parent / f"{self.home.name}-complete")
        self.directory.mkdir(parents=True, exist_ok=True)
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith("EEIO_") and k != "LOG_FILE"
        }
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "EEIO_DIRECTORY": str(self.directory),
            "EEIO_PRESET": "quick",
        }

    def script(self, name: str, *arguments: str, code: Any = 0, **settings: str) -> Done:
        """One of the profile's scripts, with settings such as EEIO_KEEP_FILES."""
        return self.command("bash", str(self.profile / name), *arguments, code=code, **settings)

    def run(self, *arguments: str, code: Any = 0, **settings: str) -> Done:
        """The executable that install.sh made."""
        program = str(self.home / f"eeio-{self.name}")
        return self.command(program, *arguments, code=code, **settings)

    def command(self, *arguments: str, code: Any = 0, **settings: str) -> Done:
        """It ends with `code`; None is any."""
        done = subprocess.run(
            arguments, cwd=self.home, env={**self.environment, **settings}, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        check_code(done, code)
        return done

    def rejects(self, arguments: str, message: str) -> None:
        """Both pre.sh and the executable refuse them with this in one line, and make no file."""
        for done in (
            self.script("pre.sh", *arguments.split(), code=2),
            self.run(*arguments.split(), code=2),
        ):
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"eeio-{self.name}: ") and message in line
        assert list(self.directory.iterdir()) == []

    def clean_up(self, *arguments: str, **settings: Any) -> None:
        """post.sh leaves no file."""
        self.script("post.sh", *arguments, **settings)
        assert list(self.directory.iterdir()) == []

    def leaves_its_pipe(self, *arguments: str, **settings: str) -> bool:
        """Whether nobody holds the standard output of a command that has ended well."""
        reading, writing = os.pipe()
        try:
            subprocess.run(
                arguments, cwd=self.home, env={**self.environment, **settings}, check=True,
                stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, timeout=300,
            )  # fmt: skip
            os.close(writing)
            os.set_blocking(reading, False)
            while os.read(reading, 65536):
                pass
        except BlockingIOError:
            return False
        finally:
            os.close(reading)
        return True

    def install(self, code: Any = 0, **settings: str) -> Done:
        return self.script("install.sh", f"{self.home}/", code=code, **settings)

    def capture(self, output: Path, factors: Mapping[str, str]) -> Capture:
        """One measured invocation, every piece of output stamped as it arrives."""
        output.mkdir(parents=True)
        arguments = [f"{key}={value}" for key, value in factors.items()]
        started_utc_s, started_s = time.time(), time.monotonic()
        process = subprocess.Popen(
            [str(self.home / f"eeio-{self.name}"), *arguments],
            cwd=self.home,
            env={**self.environment, "EEIO_OUTPUT_DIR": str(output)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stderr is not None
        stamps: list[Stamp] = []
        kept = {"stdout": b"", "stderr": b""}
        with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
            selector.register(process.stdout, selectors.EVENT_READ, "stdout")
            selector.register(process.stderr, selectors.EVENT_READ, "stderr")
            while selector.get_map():
                for key, _ in selector.select(timeout=300):
                    chunk = os.read(key.fd, 65536)
                    if not chunk:
                        selector.unregister(key.fileobj)
                        continue
                    kept[key.data] += chunk
                    stamps.append(Stamp(key.data, len(kept[key.data]), time.monotonic()))
        exit_code = process.wait(timeout=300)
        for stream, content in kept.items():
            (output / f"{stream}.txt").write_bytes(content)
        capture = Capture(
            directory=output,
            factors=dict(factors),
            exit_code=exit_code,
            started_monotonic_s=started_s,
            ended_monotonic_s=time.monotonic(),
            started_utc_s=started_utc_s,
            stamps=tuple(stamps),
        )
        capture.save()
        return capture


Installer = Callable[[str], Installed]
"""Gives the installed profile of a tool."""
