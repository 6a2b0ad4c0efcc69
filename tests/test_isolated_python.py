"""Python that eeio starts imports nothing from the current folder: others may write there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eeio.errors import EeioError
from eeio.measure import fleet_jobs as submitting
from eeio_parsers.darshan import report as darshan

ROOT = Path(__file__).parents[1]
PRODUCT = ("scripts", "src", "test-profiles", "power-monitor", "result-parsers", "docker", "suites",
           "debian")  # fmt: skip
# Python with a module or a text, in a shell or in a list of arguments; the current folder is first
# on its path unless one of -I and -P is given.
STARTED = re.compile(
    r"""(?:\bpython3?(?:\.\d+)?["']?|\$candidate"|sys\.executable,)"""
    r"""((?: ["']?-{1,2}[\w-]+["']?,?)*?) ["']?-[mc]["']?[ ,]"""
)
# Docstrings, comments and usage texts.
FOR_PEOPLE = re.compile(r"`python|usage:|prog=|^\s*(?:python|#)")
_SAFE = re.compile(r"-(?:I|P)\b")


def test_no_product_code_starts_python_with_the_current_folder() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", *PRODUCT], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    started = 0
    for name in listed:
        if "/tests/" in name:
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for line in text.splitlines():
            for match in STARTED.finditer(line):
                if FOR_PEOPLE.search(line):
                    continue
                started += 1
                assert _SAFE.search(match[1]), f"{name}: {line.strip()}"
    assert started >= 8


def _trap(folder: Path, module: str) -> Path:
    (folder / f"{module}.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    return folder / "ran"


def test_a_darshan_log_runs_no_file_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = _trap(tmp_path, "json")
    log = tmp_path / "a.darshan"
    log.write_bytes(b"3.41\0\0\0\0" + darshan.MAGIC[0] + b"\0" * 500)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EeioError):
        list(darshan.read_log(log))
    assert not ran.exists()


def test_a_job_of_a_fleet_runs_no_file_of_the_current_folder(tmp_path: Path) -> None:
    ran = _trap(tmp_path, "eeio")
    fleet = submitting.Submission("f", "dummy-suite", (), ("n1",), "2026-01-01T00:00:00+00:00")
    command = submitting.script(fleet, tmp_path, "$eeio --version")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    assert not ran.exists()


def test_pts_s_module_runs_no_file_of_the_current_folder(tmp_path: Path) -> None:
    if shutil.which("php") is None:
        pytest.skip("php is not installed")
    ran = _trap(tmp_path, "json")
    script = (
        f"require '{ROOT}/power-monitor/pts_module/python.php';"
        "echo json_encode(eeio_power_python::run('eeio.pts.protocol', array(), 60));"
    )
    done = subprocess.run(
        ["php", "-r", script], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**os.environ, "EEIO_PYTHON": sys.executable},
    )  # fmt: skip
    assert "usage" in done.stdout and not ran.exists()
