"""Lighthouse's score of accessibility, where somebody has it: nothing here fetches it.

npm install --prefix DIR --ignore-scripts lighthouse
EEIO_LIGHTHOUSE=DIR/node_modules/.bin/lighthouse .venv/bin/pytest tests/page/test_lighthouse.py
"""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eeio.comparison.campaigns import compare, named_cells
from eeio.report import page
from eeio.report.campaign.characterized import build
from tests.page.made import campaign, power

_LEAST_SCORE = 0.95


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Lighthouse reads no file:// address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("which", ["report", "comparison"])
def test_lighthouse_scores_the_page(tmp_path: Path, address: str, which: str) -> None:
    program = os.environ.get("EEIO_LIGHTHOUSE") or shutil.which("lighthouse")
    browser = shutil.which("chromium")
    if program is None or browser is None:
        pytest.skip("needs chromium and lighthouse (EEIO_LIGHTHOUSE or PATH)")
    campaigns = [campaign(name="A"), campaign(name="B", scale=1.3)]
    text = page.render(build(campaigns[:1]), power=power)
    if which == "comparison":
        compared = compare(campaigns, named_cells(campaigns))
        assert compared is not None
        text = page.render(build(campaigns), compared.changes, power)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    reported = tmp_path / "told.json"
    subprocess.run(
        [program, f"{address}/page.html", "--only-categories=accessibility", "--quiet",
         "--chrome-flags=--headless=new --no-sandbox --disable-gpu",
         "--output=json", f"--output-path={reported}"],
        env={**os.environ, "CHROME_PATH": browser}, timeout=180, check=True, capture_output=True,
    )  # fmt: skip
    body = json.loads(reported.read_text(encoding="utf-8"))
    wrong = [
        a["title"] for a in body["audits"].values() if a["score"] is not None and a["score"] < 1
    ]
    assert body["categories"]["accessibility"]["score"] >= _LEAST_SCORE, wrong
