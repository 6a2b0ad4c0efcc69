"""What `eeio bench` measured of a command, without an account of its bytes."""

import json
import shutil
from pathlib import Path

from eeio.record.tools.capture import Capture
from eeio_parsers.command import run as command


def test_without_an_account_bytes_are_unknown_and_not_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(Path(__file__).parents[1] / "outputs/dd", folder)
    reported = json.loads((folder / "command.json").read_text())
    (known,) = command.parse(Capture.load(folder)).phases
    assert (known.bytes_moved, known.durable_reason) == (0, "it wrote no data")
    (folder / "command.json").write_text(json.dumps({**reported, "account": None}))
    (phase,) = command.parse(Capture.load(folder)).phases
    assert (phase.bytes_moved, phase.bandwidth_bytes_per_s) == (None, None)
    assert "no account" in str(phase.durable_reason)
    assert not {"bytes_read", "bytes_written", "asked_bytes"} & set(phase.metrics)
