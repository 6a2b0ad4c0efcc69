"""In which order requests reach the data servers' files, and one file that all ranks share."""

import json
import random
from pathlib import Path

import pytest

from eeio.record import tools
from tests.profiles.harness import Installer
from tests.profiles.programs import Program
from tests.profiles.test_dataserver import PAGE, stamp

PROGRAM = "dataserver"

pytestmark = pytest.mark.tools

R = 65536


def observed(program: Program, folder: Path, ranks: int, *options: str) -> str | None:
    out, eeio = folder / "out.json", folder / "eeio.json"
    where = (f"directory={folder}", f"json={out}", f"eeio={eeio}")
    program.good(ranks, "operation=write", f"request={R}", f"stripe={R}", *options, *where)
    (phase,) = json.loads(eeio.read_text())["phases"]
    found = phase.get("spatiality_seen")
    assert found == json.loads(out.read_text()).get("seen")
    return found if found is None else str(found)


@pytest.mark.parametrize(
    ("ranks", "options", "reported"),
    [
        (1, "clients=1", "sequential"),
        # The two patterns of a study: each client sequential, and clients in lock-step.
        (1, "clients=4 pattern=contiguous", "mixed of 4 streams, each sequential"),
        (1, "clients=16 pattern=contiguous", "mixed of 16 streams, each sequential"),
        (1, "clients=4 pattern=strided", "sequential"),
        # A request of several stripes is one.
        (1, f"clients=4 pattern=strided stripe={R // 4}", "sequential"),
        (1, "clients=1 pattern=strided stride=3", f"strided by {3 * R} bytes"),
        (1, f"clients=1 pattern=strided stride=3 stripe={R // 4}", f"strided by {3 * R} bytes"),
        (1, "clients=4 pattern=strided stride=2", f"strided by {2 * R} bytes"),
        # On two servers every other request is the other's.
        (2, "clients=1 pattern=strided stride=3",
         f"mixed of 2 streams, each strided by {3 * R} bytes"),
    ],
)  # fmt: skip
def test_patterns(
    program: Program, tmp_path: Path, ranks: int, options: str, reported: str
) -> None:
    fields = [f"client_bytes={24 * R}", *options.split()]
    assert observed(program, tmp_path, ranks, *fields) == reported


@pytest.mark.parametrize(
    ("places", "reported"),
    [
        (random.Random(7).sample(range(400), 400), "random"),
        (list(range(400)), "sequential"),
        (list(range(399, -1, -1)), f"strided by -{R} bytes"),
        ([0], "sequential"),
        # Nearly all of it.
        ([*range(350), *random.Random(7).sample(range(400, 450), 50)], "sequential"),
    ],
    ids=("random", "forward", "backward", "one", "nearly"),
)  # fmt: skip
def test_traces(program: Program, tmp_path: Path, places: list[int], reported: str) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"0,0,write,{place * R},{R}\n" for place in places))
    assert observed(program, tmp_path, 1, f"replay={trace}") == reported


def test_ranks_of_a_shared_file_stride_through_it(program: Program, tmp_path: Path) -> None:
    """Each leaves the places of the others out; how their requests mix is as it happens."""
    options = ("file=shared", "pattern=strided", f"client_bytes={200 * R}", "stride=2")
    assert observed(program, tmp_path, 2, *options) in (
        f"mixed of 2 streams, each strided by {4 * R} bytes",
        f"strided by {2 * R} bytes",
    )


def test_nobody_knows_what_collective_calls_become(program: Program, tmp_path: Path) -> None:
    options = ("file=shared", "api=mpiio", "collective=on", "pattern=strided")
    assert observed(program, tmp_path, 2, *options) is None
    (note,) = json.loads((tmp_path / "eeio.json").read_text())["notes"]
    assert "MPI-IO makes the requests" in note


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize("how", ["api=posix", "api=mpiio", "api=mpiio collective=on"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_each_page_of_a_shared_file(program: Program, tmp_path: Path, how: str, ranks: int) -> None:
    where = [f"directory={tmp_path}", f"json={tmp_path}/out.json", "seed=7", "file=shared",
             f"client_bytes={6 * R}", f"request={R}"]  # fmt: skip
    path = tmp_path / "eeio-dataserver.0"
    pages = ranks * 6 * R // PAGE
    for pattern in ("contiguous", "strided"):
        path.unlink(missing_ok=True)
        program.good(ranks, "operation=write", f"pattern={pattern}", *how.split(), *where)
        content = path.read_bytes()
        assert [content[at : at + 8] for at in range(0, len(content), PAGE)] == [
            stamp(7, 0, page).to_bytes(8, "little") for page in range(pages)
        ]
        written = json.loads((tmp_path / "out.json").read_text())["checksum"]["written"]
        for other in ("contiguous", "strided"):
            program.good(ranks, "operation=read", f"pattern={other}", *how.split(), *where)
            body = json.loads((tmp_path / "out.json").read_text())
            assert body["aggregate"]["bytes_read"] == pages * PAGE
            assert body["checksum"]["wrong_pages"] == 0
            assert body["checksum"]["read"] == written
    assert [path.name for path in tmp_path.glob("eeio-dataserver.*")] == ["eeio-dataserver.0"]


def test_a_stride_leaves_what_lies_between_untouched(program: Program, tmp_path: Path) -> None:
    arguments = ("clients=1", "pattern=strided", "stride=4", f"client_bytes={16 * R}")
    assert observed(program, tmp_path, 1, *arguments) == f"strided by {4 * R} bytes"
    content = (tmp_path / "eeio-dataserver.0").read_bytes()
    assert [any(content[at : at + R]) for at in range(0, len(content), R)] == [
        n % 4 == 0 for n in range(13)
    ]


@pytest.mark.fast_variants(2)
@pytest.mark.parametrize(
    ("arguments", "requested", "found", "moved"),
    [
        ("spatiality=strided clients=1 file_size=34m", "strided", f"strided by {17 * R} bytes", 32),
        ("spatiality=strided clients=4 file_size=16m", "strided", "sequential", 256),
        ("clients=4 file_size=16m", "sequential", "mixed of 4 streams, each sequential", 256),
        ("file=shared buffer=on file_size=16m", "sequential", "sequential", 256),
        ("file=shared processes=2 spatiality=strided stride=8 api=mpiio buffer=on collective=on "
         "file_size=16m", "strided", None, 32),
    ],
)  # fmt: skip
def test_the_record_has_what_was_requested_and_what_was_observed(
    installed: Installer,
    tmp_path: Path, arguments: str, requested: str, found: str | None, moved: int,
) -> None:  # fmt: skip
    profile = installed("dataserver")
    given = [*arguments.split(), "request_size=64k"]
    profile.script("pre.sh", *given)
    capture = profile.capture(tmp_path / "out", dict(word.split("=", 1) for word in given))
    (phase,) = tools.parse("dataserver", capture).phases
    assert (phase.spatiality, phase.spatiality_seen) == (requested, found)
    assert (phase.bytes_moved, phase.invalid) == (moved * R, ())
