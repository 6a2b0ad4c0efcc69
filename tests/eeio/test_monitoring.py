"""The exporter, its rules and dashboard with Prometheus' own programs; Grafana's annotations."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests import dummy
from tests.plugin import Eeio, InProcess
from tests.processes import ran
from tests.simulators import FakeRapl, ScriptedMeter
from tests.waiting import free_port, until

from eeio.commands.meter.serve import _check_replaceable, write_pages
from eeio_power.meters import Channel
from eeio_power.prometheus_exporter import Totals, is_loopback, server, wants_openmetrics
from eeio_power.sampler import Sampler

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs/monitoring"
RULES = MONITORING / "eeio.rules.yml"
PATIENCE_S = 60.0
COUNTER = Channel("test:counter", "package", "energy_j")
PROMETHEUS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=" \
    "0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"  # fmt: skip


# --- formats -----------------------------------------------------------------------------------

TEXT = """\
# HELP eeio_power_watts Mean power since the previous page.
# TYPE eeio_power_watts gauge
eeio_power_watts{meter="scripted",domain="package",kind="measured"} 50.0
# HELP eeio_energy_joules_total Energy since the exporter started.
# TYPE eeio_energy_joules_total counter
eeio_energy_joules_total{meter="scripted",domain="package",kind="measured"} 100.0
# HELP eeio_unseen_seconds_total Time without a valid reading.
# TYPE eeio_unseen_seconds_total counter
eeio_unseen_seconds_total{meter="scripted",domain="package",kind="measured"} 0.0
# HELP eeio_meter_reads_total Reads of the meter.
# TYPE eeio_meter_reads_total counter
eeio_meter_reads_total{meter="scripted"} 2.0
# HELP eeio_meter_failed_reads_total Reads in which a channel gave no value.
# TYPE eeio_meter_failed_reads_total counter
eeio_meter_failed_reads_total{meter="scripted"} 0.0
"""
OPENMETRICS = """\
# HELP eeio_power_watts Mean power since the previous page.
# TYPE eeio_power_watts gauge
# UNIT eeio_power_watts watts
eeio_power_watts{meter="scripted",domain="package",kind="measured"} 50.0
# HELP eeio_energy_joules Energy since the exporter started.
# TYPE eeio_energy_joules counter
# UNIT eeio_energy_joules joules
eeio_energy_joules_total{meter="scripted",domain="package",kind="measured"} 200.0
# HELP eeio_unseen_seconds Time without a valid reading.
# TYPE eeio_unseen_seconds counter
# UNIT eeio_unseen_seconds seconds
eeio_unseen_seconds_total{meter="scripted",domain="package",kind="measured"} 0.0
# HELP eeio_meter_reads Reads of the meter.
# TYPE eeio_meter_reads counter
eeio_meter_reads_total{meter="scripted"} 3.0
# HELP eeio_meter_failed_reads Reads in which a channel gave no value.
# TYPE eeio_meter_failed_reads counter
eeio_meter_failed_reads_total{meter="scripted"} 0.0
# EOF
"""


def pages(tmp_path: Path) -> tuple[str, str]:
    """Two pages of a meter of 50 W, two seconds each: in Prometheus' format and in OpenMetrics."""
    now_s = [100.0]
    meter = ScriptedMeter([COUNTER], lambda: [50.0 * now_s[0]], native_period_s=0.001)
    with Sampler([meter], tmp_path / "s.gz", rate_hz=1e-3, clock=lambda: now_s[0]) as sampler:
        totals = Totals(sampler, lambda: now_s[0])
        now_s[0] += 2.0
        text = totals.collect()
        now_s[0] += 2.0
        return text, totals.collect(openmetrics=True)


def test_the_two_formats(tmp_path: Path) -> None:
    text, openmetrics = pages(tmp_path)
    assert text == TEXT
    assert openmetrics == OPENMETRICS


def test_promtool_has_no_complaint_about_the_metrics() -> None:
    done = promtool("check", "metrics", stdin=TEXT)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ("APPLICATION/OpenMetrics-Text; version=1.0.0 , */*", True),
        ("text/plain;version=0.0.4", False),
        ("text/plain, application/openmetrics-text;q=0.5", False),
        ("text/*;q=0.9, application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=much", False),
        ("*/*", False),
        ("", False),
        (";;,,q=", False),
    ],
)
def test_the_format_is_negotiated(accept: str, wanted: bool) -> None:
    assert wants_openmetrics(accept) is wanted


@contextmanager
def served(tmp_path: Path) -> Iterator[str]:
    """`eeio meter serve` with a simulated RAPL of 150 W; gives HOST:PORT."""
    with FakeRapl(tmp_path / "powercap", power_w=lambda _: 150.0) as fake:
        command = [sys.executable, "-m", "eeio", "meter", "serve", "--port", "0",
                   "--meter", f"rapl,root={fake.root}"]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().strip()
                assert url.startswith("http://127.0.0.1:") and url.endswith("/metrics")
                yield url.removeprefix("http://").removesuffix("/metrics")
            finally:
                process.terminate()
                assert process.wait(PATIENCE_S) == 0


def test_the_accept_header_chooses(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        for accept, kind in ((PROMETHEUS, "application/openmetrics-text; version=1.0.0"),
                             ("text/plain", "text/plain; version=0.0.4")):  # fmt: skip
            request = urllib.request.Request(f"http://{address}/metrics", None, {"Accept": accept})
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as page:
                assert page.headers["Content-Type"] == f"{kind}; charset=utf-8"
                assert page.read().endswith(b"# EOF\n") is ("openmetrics" in kind)


# --- text file ---------------------------------------------------------------------------------


def test_the_file_is_replaced_in_one_step_and_removed_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "eeio.prom"
    ended = threading.Event()
    numbers = iter(range(1, 10**9))
    writer = threading.Thread(
        target=write_pages, args=(lambda: f"{next(numbers)}\n" * 5000, file, 0.001, ended)
    )
    writer.start()
    try:
        until(file.exists)
        observed = []
        for _ in range(200):
            lines = file.read_text().split("\n")
            assert len(lines) == 5001 and len(set(lines[:-1])) == 1
            observed.append(int(lines[0]))
        assert observed == sorted(observed)
        names = {path.name for path in tmp_path.iterdir()}
        assert [name for name in names if name.endswith(".prom")] == ["eeio.prom"]
    finally:
        ended.set()
        writer.join(PATIENCE_S)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"), [("eeio.txt", "end in .prom"), ("nowhere/eeio.prom", "does not exist")]
)
def test_a_file_that_node_exporter_cannot_read_is_rejected(
    tmp_path: Path, name: str, why: str, in_process: InProcess
) -> None:
    error = in_process(
        "meter", "serve", "--meter", "demo", "--textfile", str(tmp_path / name), code=2
    ).err
    assert why in error and len(error.splitlines()) == 1


def test_sigterm_ends_the_command_and_removes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "eeio.prom"
    command = [sys.executable, "-m", "eeio", "meter", "serve", "--meter", "demo",
               "--textfile", str(file)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        until(file.exists)
        text = file.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=PATIENCE_S)[0] == f"{file}\n"
    assert process.returncode == 0 and not file.exists()
    assert 'kind="demo"' in text and "# EOF" not in text
    exporter = shutil.which("prometheus-node-exporter")
    if exporter is None:
        return
    file.write_text(text)
    port = free_port()
    with started(
        exporter, "--collector.disable-defaults", "--collector.textfile",
        f"--collector.textfile.directory={tmp_path}", f"--web.listen-address=127.0.0.1:{port}",
    ):  # fmt: skip
        page = until(lambda: answer(f"http://127.0.0.1:{port}/metrics"))
    assert "node_textfile_scrape_error 0" in page
    assert re.search(r'^eeio_power_watts\{domain="system",kind="demo",meter="demo"\} ', page, re.M)


# --- Prometheus --------------------------------------------------------------------------------


def promtool(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("needs promtool (Debian: prometheus)")
    return ran([found, *arguments], input=stdin, code=None)


def test_promtool_accepts_the_rules_and_their_tests_pass() -> None:
    done = promtool("check", "rules", "--lint-fatal", str(RULES))
    assert done.returncode == 0 and "8 rules found" in done.stdout, done.stdout + done.stderr
    done = promtool("test", "rules", str(MONITORING / "eeio.rules.test.yml"))
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def dashboard() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((MONITORING / "eeio.dashboard.json").read_text())
    return body


def test_the_dashboard_names_no_data_source_of_its_own() -> None:
    body = dashboard()
    assert [variable["name"] for variable in body["templating"]["list"]] == [
        "datasource", "instance", "domain",
    ]  # fmt: skip
    panels = body["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == 5
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    (annotations,) = body["annotations"]["list"]
    assert annotations["target"]["tags"] == ["eeio"]


@contextmanager
def started(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def answer(url: str) -> str:
    """Empty while the program starts."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            return str(page.read().decode())
    except urllib.error.URLError:
        return ""


def test_prometheus_scrapes_evaluates_the_rules_and_fills_the_dashboard(tmp_path: Path) -> None:
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("needs prometheus (Debian: prometheus)")
    with served(tmp_path) as address:
        port = free_port()
        (tmp_path / "p.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{RULES}]\n"
            f"scrape_configs: [{{job_name: eeio, static_configs: [{{targets: ['{address}']}}]}}]\n"
        )
        url = f"http://127.0.0.1:{port}/api/v1"

        def requested(path: str) -> Any:
            text = answer(f"{url}/{path}")
            return json.loads(text)["data"] if text else None

        def series(expression: str) -> list[dict[str, Any]]:
            found = requested(f"query?query={urllib.parse.quote(expression)}")
            return [] if found is None else list(found["result"])

        with started(
            prometheus, f"--config.file={tmp_path / 'p.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
        ):  # fmt: skip
            recorded = "instance_meter_domain:eeio_energy_joules:rate5m"
            until(lambda: series(f"count_over_time({recorded}[1m]) > 3"))
            (target,) = requested("targets")["activeTargets"]
            assert (target["health"], target["lastError"]) == ("up", "")
            assert {one["metric"]["domain"] for one in series(recorded)} == {"package", "dram"}
            # The recorded mean needs 5 min of samples; the last seconds have the same power.
            for expression in ("sum(rate(eeio_energy_joules_total[5s]))", "sum(eeio_power_watts)"):
                (power,) = series(expression)
                assert float(power["value"][1]) == pytest.approx(150.0, rel=0.2), expression
            # OpenMetrics gives Prometheus the unit, which its text format cannot.
            assert requested("metadata?metric=eeio_energy_joules_total") == {} and requested(
                "metadata?metric=eeio_energy_joules"
            ) == {
                "eeio_energy_joules": [
                    {
                        "type": "counter",
                        "help": "Energy since the exporter started.",
                        "unit": "joules",
                    }
                ]
            }
            rules = [rule for group in requested("rules")["groups"] for rule in group["rules"]]
            assert {(rule["health"], rule.get("lastError", "")) for rule in rules} == {("ok", "")}
            assert requested("alerts")["alerts"] == []
            for panel in dashboard()["panels"]:
                for target in panel["targets"]:
                    expression = target["expr"]
                    for name, value in (("$__rate_interval", "1m"), ("$__range", "1m"),
                                        ("$instance", ".*"), ("$domain", ".*")):  # fmt: skip
                        expression = expression.replace(name, value)
                    found = series(expression)
                    assert found, expression
                    assert all(float(one["value"][1]) >= 0 for one in found), expression


# --- Grafana -----------------------------------------------------------------------------------


class FakeGrafana:
    """The published request form of POST /api/annotations; other requests get an error."""

    def __init__(self, status: int = 200, location: str | None = None) -> None:
        self.bodies: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                authorized = self.headers["Authorization"] == "Bearer glsa_secret"
                kind = self.headers["Content-Type"]
                if self.path != "/grafana/api/annotations" or kind != "application/json":
                    self._answer(404, {"message": "Not found"})
                elif not authorized:
                    self._answer(401, {"message": "Invalid API key"})
                else:
                    outer.bodies.append(json.loads(body))
                    self._answer(status, {"message": "Annotation added", "id": 1})

            def do_GET(self) -> None:
                outer.bodies.append({"get": self.path})
                self._answer(200, {})

            def _answer(self, code: int, body: Any) -> None:
                raw = json.dumps(body).encode()
                self.send_response(code)
                if location is not None:
                    self.send_header("Location", location)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/grafana/"

    def __enter__(self) -> "FakeGrafana":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def campaign(home: Path, eeio: Eeio) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs a campaign of two runs with these variables."""
    suite = dummy.suite(home, "level=filesystem operation=read sleep_s=0.05 bytes_moved=1000")

    def run(**environment: str) -> "subprocess.CompletedProcess[str]":
        return eeio.run(
            str(suite), "--meter", "none", "--name", "mine", "--repetitions", "2", "--idle",
            "0.1", environment=environment, code=None,
        )  # fmt: skip

    return run


def test_begin_and_end_of_a_campaign(campaign: Any) -> None:
    begun_ms = time.time() * 1000
    with FakeGrafana() as grafana:
        done = campaign(EEIO_GRAFANA_URL=grafana.url, EEIO_GRAFANA_TOKEN="glsa_secret")
    assert done.returncode == 0, done.stderr
    begin, end = grafana.bodies
    assert set(begin) == {"time", "tags", "text"}
    assert set(end) == {"time", "timeEnd", "tags", "text"}
    assert begin["tags"] == end["tags"]
    assert begin["tags"][:2] == ["eeio", f"host:{socket.gethostname()}"]
    assert begin["text"] == "mine: begin, 2 runs left"
    assert end["text"] == "mine: end"
    assert begun_ms - 1 <= begin["time"] == end["time"] < end["timeEnd"] <= time.time() * 1000 + 1
    assert isinstance(begin["time"], int) and isinstance(end["timeEnd"], int)


@pytest.mark.parametrize(
    ("url", "token", "why"),
    [
        (None, "wrong", "HTTP Error 401"),
        (None, "", "set EEIO_GRAFANA_TOKEN"),
        (None, "two\nlines", "a header cannot"),
        ("http://127.0.0.1:1", "glsa_secret", "Connection refused"),
        ("file:///etc/passwd", "glsa_secret", "not a http:// or https:// address"),
        ("http://[::1", "glsa_secret", "IPv6"),
        ("http://127.0.0.1:9x/", "glsa_secret", "nonnumeric port"),
    ],
)
def test_a_failure_is_a_line_and_no_failure_of_the_campaign(
    campaign: Any, url: str | None, token: str, why: str
) -> None:
    with FakeGrafana() as grafana:
        done = campaign(EEIO_GRAFANA_URL=url or grafana.url, EEIO_GRAFANA_TOKEN=token)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "Grafana" in line]
    assert len(lines) == 2 and all(why in line for line in lines), done.stderr
    assert "glsa_secret" not in done.stderr
    assert grafana.bodies == []


def test_the_token_follows_no_redirect(campaign: Any) -> None:
    with FakeGrafana() as other, FakeGrafana(302, other.url) as grafana:
        done = campaign(EEIO_GRAFANA_URL=grafana.url, EEIO_GRAFANA_TOKEN="glsa_secret")
    assert done.returncode == 0
    assert len(grafana.bodies) == 2 and other.bodies == []
    assert "HTTP Error 302" in done.stderr


def test_without_the_variable_nothing_is_sent(campaign: Any) -> None:
    done = campaign(EEIO_GRAFANA_TOKEN="glsa_secret")
    assert done.returncode == 0 and "Grafana" not in done.stderr


@pytest.mark.parametrize(
    ("error", "how"), [(OSError("full"), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_the_end_states_how(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, how: str
) -> None:
    from eeio.measure.campaign.annotations import annotated

    with FakeGrafana() as grafana:
        monkeypatch.setenv("EEIO_GRAFANA_URL", grafana.url)
        monkeypatch.setenv("EEIO_GRAFANA_TOKEN", "glsa_secret")
        with pytest.raises(type(error)), annotated("mine", None, 3):
            raise error
    assert [body["text"] for body in grafana.bodies] == ["mine: begin, 3 runs left", f"mine: {how}"]


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("localhost:9797", True), ("127.0.0.1:9797", True), ("[::1]:9797", True), ("[::1]", True),
        ("127.9.9.9", True), ("", True), ("LOCALHOST", True), ("rebound.example:9797", False),
        ("192.0.2.7", False), ("localhost.example", False), ("127.0.0.1.example:80", False),
    ],
)  # fmt: skip
def test_only_requests_to_a_loopback_name_are_answered(host: str, accepted: bool) -> None:
    """Another site's name may lead to 127.0.0.1 (DNS rebinding)."""
    assert is_loopback(host) is accepted


def test_a_page_of_another_site_reads_no_power(tmp_path: Path) -> None:
    meter = ScriptedMeter([COUNTER], lambda: [1.0])
    with (
        Sampler([meter], tmp_path / "s.gz") as sampler,
        server(Totals(sampler), "127.0.0.1", 0) as serving,
    ):
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{serving.server_address[1]}/metrics"
        try:
            request = urllib.request.Request(url, headers={"Host": "rebound.example"})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(request, timeout=PATIENCE_S)
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                assert b"eeio_energy_joules_total" in answer.read()
        finally:
            serving.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", ["text", "link", "dangling", "folder"])
def test_the_text_file_replaces_nothing_of_others(
    tmp_path: Path, in_process: InProcess, kind: str
) -> None:
    file, victim = tmp_path / "power.prom", tmp_path / "victim"
    victim.write_text("# HELP eeio_power_watts\n" if kind == "link" else "kept")
    if kind == "text":
        file.write_text("kept")
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(victim if kind == "link" else tmp_path / "nowhere")
    error = in_process("meter", "serve", "--meter", "demo", "--textfile", str(file), code=2).err
    assert "exists" in error and "Remove it, or name another file" in error
    assert os.path.lexists(file) and victim.exists()


def test_the_text_file_of_an_exporter_that_was_killed_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "power.prom"
    file.write_text(TEXT)
    _check_replaceable(file)
    _check_replaceable(tmp_path / "new.prom")
