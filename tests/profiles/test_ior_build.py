"""How IOR comes to a machine that has none: fetched, or of what the user put into a folder."""

import hashlib
import http.server
import io
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.processes import ran
from tests.profiles.harness import PROFILES

BUILD = PROFILES / "eeio-ior-1.0.0" / "build.sh"
MAKEFILE = "ior:\n\tcp /bin/true ior\n"
NOWHERE = "http://127.0.0.1:1/ior.tar.gz"  # a port that nobody serves

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("curl") is None,
    reason="no make or curl: scripts/setup installs them",
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small archive that configures and builds as a release of IOR does."""
    path = tmp_path / "served" / "ior-3.3.0.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (("configure", "#!/bin/sh\n"), ("src/Makefile", MAKEFILE)):
            info = tarfile.TarInfo(f"ior-3.3.0/{name}")
            info.size, info.mode = len(text), 0o755
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def url(release: Path) -> Iterator[str]:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=release.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{release.name}"
        server.shutdown()
        thread.join()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(
    tmp_path: Path, url: str = NOWHERE, sha256: str = ""
) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "given").mkdir(exist_ok=True)
    arguments = ["sh", str(BUILD), str(tmp_path / "bin/ior"), str(tmp_path / "given")]
    settings = {"EEIO_IOR_URL": url, "EEIO_IOR_SHA256": sha256, "PATH": "/usr/bin:/bin"}
    return ran(arguments, env=settings, code=None)


def test_a_release_is_fetched_and_built(tmp_path: Path, release: Path, url: str) -> None:
    done = build(tmp_path, url, sha256(release))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert subprocess.run([tmp_path / "bin/ior"], check=False, timeout=300).returncode == 0


def test_without_a_network_it_reports_what_to_do(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "cannot be fetched" in line and "docker/ior/" in line and "EEIO_IOR" in line
    assert not (tmp_path / "bin/ior").exists()


def test_another_file_than_the_release_is_rejected(tmp_path: Path, url: str) -> None:
    """As a portal of a hotel answers."""
    done = build(tmp_path, url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not upstream's release 3.3.0 (wrong SHA-256)" in done.stderr


def test_a_given_release_needs_no_network(tmp_path: Path, release: Path) -> None:
    (tmp_path / "given").mkdir()
    release.rename(tmp_path / "given" / release.name)
    assert build(tmp_path).returncode == 1
    done = build(tmp_path, sha256=sha256(tmp_path / "given" / release.name))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_given_checkout_is_left_as_it_is(tmp_path: Path) -> None:
    if any(shutil.which(tool) is None for tool in ("autoreconf", "automake", "pkg-config")):
        pytest.skip("no autoconf, automake or pkg-config")
    checkout = tmp_path / "given" / "checkout"
    (checkout / "src").mkdir(parents=True)
    (checkout / "configure.ac").write_text("AC_INIT([ior], [4])\nAC_OUTPUT\n")
    (checkout / "src/Makefile").write_text(MAKEFILE)
    done = build(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "bin/ior").is_file()
    found = {str(path.relative_to(checkout)) for path in checkout.rglob("*")}
    assert found == {"src", "src/Makefile", "configure.ac"}


def test_what_cannot_be_built_names_its_log(tmp_path: Path, release: Path, url: str) -> None:
    with tarfile.open(release, "w:gz") as archive:
        info = tarfile.TarInfo("ior-3.3.0/README")
        archive.addfile(info, io.BytesIO())
    done = build(tmp_path, url, sha256(release))
    assert done.returncode == 1
    assert f"cannot be built: see {tmp_path / 'bin/ior.log'}" in done.stderr
