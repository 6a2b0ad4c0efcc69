"""The guides for who adds something, and the questions of who uses it, followed to the letter in a
copy of the repository.

Of a page are done, in its order:

- "`PATH`:" alone on a line, and a block of code: the file is written;
- "In `PATH`, below the line `LINE`:" and a block: the block is put there; with "instead of", the
  line gives way to it;
- "At the end of `PATH`:" and a block: it is added, below two empty lines;
- a block `console`: what stands behind `$ ` is typed, in the folder of the copy. The lines below
  must be printed, in that order; others may stand between them, and `...` stands for any text.
  What is exported holds for all that follows.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eeio.errors import RejectedError
from eeio.machine.below import check_storage
from eeio.machine.filesystem import mount_of
from tests.executables import executable
from tests.mounts import attached, mounted, sparse

ROOT = Path(__file__).parents[1]
PACKAGES = ("power-monitor", "result-parsers", "src")
GUIDES = [
    *sorted(path.stem for path in (ROOT / "docs/how-to").glob("adding-a-*.md")),
    "faq",
    "three-tasks",
]

_STEP = re.compile(
    r"^(?:`(?P<new>[^`\n]+)`|At the end of `(?P<longer>[^`\n]+)`"
    r"|In `(?P<changed>[^`\n]+)`,\s(?P<where>below|instead\sof)\sthe\sline\s"
    r"`(?P<line>[^`\n]+)`):\n\n"
    r"```\w+\n(?P<text>.*?)^```$"
    r"|^```console\n(?P<session>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Copy:
    """A copy of the repository, in which `.venv/bin/` runs the copy."""

    root: Path
    exported: dict[str, str] = field(default_factory=dict)

    def follow(self, page: str) -> list[Path]:
        """Does what the page says; the files of Python that it adds."""
        written = []
        for step in _STEP.finditer(page):
            if step["session"] is not None:
                self._type(step["session"])
                continue
            path = self.root / (step["new"] or step["longer"] or step["changed"])
            if step["new"]:
                assert not path.exists(), f"{path} is there already"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step["text"], encoding="utf-8")
            elif step["longer"]:
                path.write_text(path.read_text("utf-8") + "\n\n" + step["text"], encoding="utf-8")
            else:
                below = step["where"] == "below"
                path.write_text(_changed(path, step["line"], below, step["text"]), encoding="utf-8")
            written.append(path)
        return [path for path in written if path.suffix == ".py" and path.exists()]

    def run(self, arguments: list[str] | str) -> "subprocess.CompletedProcess[str]":
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "EEIO_"))}
        return subprocess.run(
            ["sh", "-c", arguments] if isinstance(arguments, str) else arguments,
            cwd=self.root,
            env={
                **kept,
                "EEIO_LOCKS": os.environ["EEIO_LOCKS"],
                "PYTHONPATH": ":".join(str(self.root / package) for package in PACKAGES),
                "HOME": str(self.root.parent),
                "XDG_DATA_HOME": str(self.root.parent / "data"),
                "XDG_STATE_HOME": str(self.root.parent / "state"),
                **self.exported,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # in the order of a terminal
            text=True,
            timeout=300,
            check=False,
        )

    def _type(self, session: str) -> None:
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = self.run(command)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}"
            first, *fields = shlex.split(command)
            if first == "export":
                for name, _, value in (word.partition("=") for word in fields):
                    self.exported[name] = value.replace("$PWD", str(self.root))
            lines = iter(done.stdout.splitlines())
            for wanted in expected.splitlines():
                pattern = ".*".join(map(re.escape, wanted.split("...")))
                assert any(re.fullmatch(pattern, line) for line in lines), (
                    f"$ {command}\n{done.stdout}\nhas no line, or none in its place: {wanted}"
                )


def _changed(path: Path, line: str, below: bool, text: str) -> str:
    """The file with the text below its one line that reads so, or in its place."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    (index,) = [index for index, found in enumerate(lines) if found.strip() == line]
    return "".join((*lines[: index + below], text, *lines[index + 1 :]))


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    """A folder, for root on a drive of its own: runs on one that other programs use are invalid."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        yield tmp_path
        return
    image = sparse(tmp_path / "drive.img", 8 << 30)
    options = "lazy_itable_init=0,lazy_journal_init=0"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", options, str(image)], check=True, timeout=300)
    with attached(image) as node, mounted(node, tmp_path / "drive") as folder:
        yield folder


@pytest.fixture
def copy(drive: Path) -> Copy:
    root = drive / "eeio"
    unwanted = shutil.ignore_patterns("__pycache__", "data", "outputs")
    for folder in (*PACKAGES, "test-profiles", "suites", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=unwanted)
    (root / "tests/data").symlink_to(ROOT / "tests/data")
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, root)
    bin_folder = root / ".venv/bin"
    bin_folder.mkdir(parents=True)
    for name in ("eeio", "pytest", "ruff"):
        executable(bin_folder / name, f'#!/bin/sh\nexec {sys.executable} -m {name} "$@"\n')
    return Copy(root)


def _touched(guide: str) -> tuple[set[str], list[str]]:
    """The files that a page adds, and those of the checkout that it changes, once for each time."""
    page = (ROOT / "docs/how-to" / f"{guide}.md").read_text(encoding="utf-8")
    steps = list(_STEP.finditer(page))
    added = {step["new"] for step in steps if step["new"]}
    changed = [found for step in steps if (found := step["longer"] or step["changed"])]
    return added, changed


def test_what_one_adds_touches_one_place() -> None:
    """A study touches folders of one's own; a study that needs no code, the folder of its suite."""
    added, changed = _touched("adding-a-study")
    assert not changed and all(path.startswith("own/") for path in added)
    suite = {path for path in added if path.startswith("own/suites/")}
    assert {Path(path).parent for path in suite} == {Path("own/suites/drift")}
    assert {Path(path).parent for path in added - suite - {"own/test_drift.py"}} == {
        Path("own/studies/drift")
    }
    added, changed = _touched("adding-a-profile")
    assert not changed and all(path.startswith("own/") for path in added)
    assert len([path for path in added if path.startswith("own/profiles/")]) == 6
    # A command touches one file, and one line.
    added, changed = _touched("adding-a-command")
    assert [path for path in added if not path.startswith("tests/")] == [
        "src/eeio/commands/size.py"
    ]
    assert changed == ["src/eeio/commands/registry.py"]


@pytest.mark.fast_variants(1)
@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_is_true(guide: str, copy: Copy) -> None:
    page = (ROOT / "docs/how-to" / f"{guide}.md").read_text(encoding="utf-8")
    if "--directory" in page:
        try:
            check_storage(copy.root, mount_of(copy.root), False)
        except RejectedError as error:
            pytest.skip(f"{error}; pytest --basetemp=DIR names another")
    assert "```console" in page, "a guide shows that what it made works"
    blocks = len(re.findall(r"^```\w", page, flags=re.MULTILINE))
    assert blocks == len(list(_STEP.finditer(page))), "a block that nobody is told what to do with"
    written = list(map(str, copy.follow(page)))
    for arguments in (["check"], ["format", "--check"]) if written else ():
        done = copy.run([".venv/bin/ruff", *arguments, *written])
        assert done.returncode == 0, done.stdout
