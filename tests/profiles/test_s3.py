"""eeio-s3 with a small object store in this process, and with moto where it is installed."""

import hashlib
import importlib.util
import ipaddress
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from eeio.errors import EeioError
from eeio.measure.profiles import installation
from eeio.measure.profiles import profile as profiles
from eeio.record import tools
from tests.profiles.harness import PROFILES, Installed, Installer

pytestmark = pytest.mark.tools

CLIENT = PROFILES / "eeio-s3-1.0.0/client.py"
FACTORS = ["request_size=4k", "processes=3", "objects=30"]
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


class Objects(ThreadingHTTPServer):
    """Buckets in memory. `full` objects at most; `stops` after so many requests; `keeps` all."""

    daemon_threads = True

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((address, port), _Handler)
        self.buckets: dict[str, dict[str, bytes]] = {"users-own": {"kept": b"x"}}
        self.made: list[str] = []
        self.full = self.stops = 10**9
        self.requests = 0
        self.key = "key"
        self.keeps = False
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Objects

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _error(self, status: int, code: str, message: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
                     .encode())  # fmt: skip

    def _any(self) -> None:
        store, method = self.server, self.command
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urllib.parse.urlsplit(self.path)
        bucket, _, key = parts.path[1:].partition("/")
        with store.lock:
            store.requests += 1
            if store.requests > store.stops:
                self.close_connection = True
                return
            if f"Credential={store.key}/" not in self.headers["Authorization"]:
                self._error(403, "InvalidAccessKeyId", "The key does not exist.")
            elif method != "PUT" and store.keeps:
                self._error(403, "AccessDenied", "Nothing is removed.")
            elif method == "PUT" and not key:
                store.buckets[bucket] = {}
                store.made.append(bucket)
                self._answer(200)
            elif bucket not in store.buckets:
                self._error(404, "NoSuchBucket", "It does not exist.")
            elif method == "PUT" and len(store.buckets[bucket]) >= store.full:
                self._error(507, "QuotaExceeded", "The bucket is full.")
            elif method == "PUT":
                store.buckets[bucket][key] = body
                self._answer(200)
            elif method == "GET" and key:
                self._answer(200, store.buckets[bucket][key])
            elif method == "GET":
                self._list(store, bucket, urllib.parse.parse_qs(parts.query))
            elif not key and store.buckets[bucket]:
                self._error(409, "BucketNotEmpty", "It has objects.")
            else:
                del (store.buckets[bucket] if key else store.buckets)[key or bucket]
                self._answer(204)

    def _list(self, store: Objects, bucket: str, query: dict[str, list[str]]) -> None:
        after = query.get("continuation-token", [""])[0]
        keys = sorted(key for key in store.buckets[bucket] if key > after)
        page = keys[:7]
        more = "true" if len(keys) > len(page) else "false"
        body = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in page)
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if page else ""
        self._answer(
            200,
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{more}</IsTruncated>{body}{token}</ListBucketResult>".encode(),
        )

    do_GET = do_PUT = do_DELETE = _any  # noqa: N815 - names of http.server

    def log_message(self, format: str, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def store() -> Iterator[Objects]:
    with Objects() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def s3(installed: Installer, store: Objects) -> Installed:
    endpoint = f"http://127.0.0.1:{store.server_address[1]}"
    profile = installed("s3")
    profile.environment |= {
        "EEIO_S3_ENDPOINT": endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
    }  # fmt: skip
    return profile


def client() -> ModuleType:
    spec = importlib.util.spec_from_file_location("s3_client", CLIENT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_signature_is_that_of_amazons_example() -> None:
    """Example "GET Bucket (List Objects)" of the documentation of AWS Signature Version 4."""
    made = client()
    signed, names = made.signature(
        SECRET, "us-east-1", "20130524T000000Z", "GET", "/", "max-keys=2&prefix=J",
        {"Host": "examplebucket.s3.amazonaws.com", "x-amz-date": "20130524T000000Z",
         "x-amz-content-sha256": made.EMPTY},
    )  # fmt: skip
    assert names == "host;x-amz-content-sha256;x-amz-date"
    assert signed == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_percentiles_are_those_of_nearest_rank() -> None:
    phase = client().Phase("put", 20, 1, lambda _: 1)
    phase.taken = [float(number) for number in range(20, 0, -1)]
    metrics = phase.body("write", 1)["metrics"]
    assert (metrics["latency_p50_s"], metrics["latency_p95_s"]) == (10, 19)
    assert metrics["latency_max_s"] == 20 and "latency_p99_s" not in metrics


def test_cycle(s3: Installed, store: Objects, tmp_path: Path) -> None:
    s3.script("pre.sh", *FACTORS)
    capture = s3.capture(tmp_path / "out", dict(word.split("=") for word in FACTORS))
    assert capture.exit_code == 0, capture.text("stderr.txt")
    phases = tools.parse("s3", capture).phases
    assert [(p.name, p.operation, p.bytes_moved) for p in phases] == [
        ("put", "write", 30 * 4096), ("get", "read", 30 * 4096),
        ("list", "metadata", 0), ("delete", "metadata", 0),
    ]  # fmt: skip
    assert [p.metrics["operations"] for p in phases] == [30, 30, 3 * 5, 30]  # pages of 7 keys
    for phase in phases:
        assert phase.start_s is not None and phase.end_s is not None
        rate = phase.metrics["operations"] / (phase.end_s - phase.start_s)
        assert phase.metrics["operations_per_s"] == pytest.approx(rate)
    assert all(re.fullmatch("eeio-[0-9a-f]{32}", name) for name in store.made)
    assert store.buckets == {"users-own": {"kept": b"x"}}
    s3.clean_up()


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ({"key": "other"}, "PUT 403: InvalidAccessKeyId: The key does not exist."),
        ({"full": 10}, "PUT 507: QuotaExceeded: The bucket is full."),
        ({"stops": 40}, "the server ended the connection"),
    ],
)
def test_trouble_is_one_line(
    s3: Installed, store: Objects, trouble: dict[str, object], message: str
) -> None:
    s3.script("pre.sh", *FACTORS)
    vars(store).update(trouble)
    done = s3.run(*FACTORS, code=1)
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert store.buckets["users-own"] == {"kept": b"x"}
    for bucket in set(store.buckets) - {"users-own"}:
        assert f"; the bucket {bucket} is left at http://127.0.0.1:" in done.stderr
    # What could not be removed is removed before the next run.
    vars(store).update({"key": "key", "full": 10**9, "stops": 10**9})
    s3.script("pre.sh", *FACTORS)
    assert list(store.buckets) == ["users-own"]


def _certificate(folder: Path, days: int) -> Path:
    """A self-signed certificate of 127.0.0.1, valid from two days ago for so many days; its key is
    in the same file."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begins = datetime.now(UTC) - timedelta(days=2)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(begins).not_valid_after(begins + timedelta(days=days))
        .add_extension(address, critical=False).sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "store.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ) + made.public_bytes(serialization.Encoding.PEM)
    )  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("days", "known", "message"),
    [
        (30, True, ""),
        (30, False, "the certificate is not valid: self-signed certificate"),
        (1, True, "the certificate is not valid: certificate has expired"),
    ],
)
def test_https(
    s3: Installed, store: Objects, tmp_path: Path, days: int, known: bool, message: str
) -> None:
    certificate = _certificate(tmp_path, days)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    store.socket = context.wrap_socket(store.socket, server_side=True)
    s3.environment["EEIO_S3_ENDPOINT"] = f"https://127.0.0.1:{store.server_address[1]}"
    s3.environment |= {"AWS_CA_BUNDLE": str(certificate)} if known else {}
    s3.script("pre.sh", *FACTORS)
    done = s3.run(*FACTORS, code=None)
    if message:
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
    else:
        assert done.returncode == 0, done.stderr
        (bucket,) = store.made
        assert re.fullmatch("eeio-[0-9a-f]{32}", bucket)
    assert store.buckets == {"users-own": {"kept": b"x"}}


def test_a_missing_file_of_certificates_is_named(s3: Installed) -> None:
    s3.environment |= {"EEIO_S3_ENDPOINT": "https://127.0.0.1:1", "AWS_CA_BUNDLE": "/no/such"}
    s3.script("pre.sh", *FACTORS)
    assert "AWS_CA_BUNDLE=/no/such: " in s3.run(*FACTORS, code=1).stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("keeps", [False, True])
def test_a_signal_removes_the_bucket_or_names_it(
    s3: Installed, store: Objects, number: int, keeps: bool
) -> None:
    store.keeps = keeps
    arguments = [
        sys.executable, "-I", "-S", str(CLIENT), "run", f"state={s3.home / 'state'}", "size=4096",
        f"endpoint={s3.environment['EEIO_S3_ENDPOINT']}", "region=us-east-1", "objects=100000",
        "concurrency=16", "seed=1", f"eeio={s3.home / 'eeio.json'}",
    ]  # fmt: skip
    process = subprocess.Popen(arguments, env=s3.environment, stderr=subprocess.PIPE, text=True)
    try:
        until_s = time.monotonic() + 60
        while store.requests < 100 and time.monotonic() < until_s:
            time.sleep(0.01)
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + number, error
    (bucket,) = store.made
    endpoint = s3.environment["EEIO_S3_ENDPOINT"]
    first, *others = error.splitlines()
    assert first == f"eeio-s3: removing the bucket {bucket} at {endpoint}"
    if keeps:
        (line,) = others
        assert line.startswith(f"eeio-s3: the bucket {bucket} is left at {endpoint}; the next run")
    else:
        assert store.buckets == {"users-own": {"kept": b"x"}} and not others
    assert (s3.home / "state").exists() == keeps


def test_the_next_run_removes_the_bucket_of_a_killed_one(s3: Installed, store: Objects) -> None:
    s3.script("pre.sh", *FACTORS)
    arguments = [str(s3.home / "eeio-s3"), *FACTORS, "objects=100000"]
    process = subprocess.Popen(arguments, env=s3.environment, start_new_session=True)
    try:
        until_s = time.monotonic() + 20
        while store.requests < 20 and time.monotonic() < until_s:
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(store.buckets) == 2
    s3.script("pre.sh", *FACTORS)
    assert store.buckets == {"users-own": {"kept": b"x"}}


@pytest.mark.parametrize("trouble", ["endpoint", "key"])
def test_a_bucket_that_was_never_made_does_not_stop_the_next_run(
    s3: Installed, store: Objects, trouble: str
) -> None:
    wrong = {
        "endpoint": {"EEIO_S3_ENDPOINT": "http://127.0.0.1:1"},
        "key": {"AWS_ACCESS_KEY_ID": "other"},
    }[trouble]
    s3.script("pre.sh", *FACTORS, **wrong)
    s3.run(*FACTORS, code=1, **wrong)
    assert not list(s3.home.glob("*.bucket"))
    s3.script("pre.sh", *FACTORS)
    s3.run(*FACTORS)
    assert list(store.buckets) == ["users-own"]


def state_of(s3: Installed) -> Path:
    """The file that names the bucket of a run."""
    digest = hashlib.sha256(str(s3.directory / "eeio-scratch").encode()).hexdigest()
    return s3.home / f"eeio-s3.{digest[:16]}.bucket"


def test_a_file_on_the_drive_names_no_bucket_to_remove(s3: Installed, store: Objects) -> None:
    """On a drive of others it named a bucket of another run, which was removed."""
    bucket = f"eeio-{'0' * 32}"
    store.buckets[bucket] = {"in use": b"x"}
    s3.script("pre.sh", *FACTORS)
    planted = s3.directory / "eeio-scratch/eeio-s3.bucket"
    for script in ("pre.sh", "post.sh"):
        planted.write_text(f"{s3.environment['EEIO_S3_ENDPOINT']} us-east-1 {bucket}\n")
        s3.script(script, *FACTORS)
    assert store.buckets[bucket] == {"in use": b"x"}


@pytest.mark.parametrize("script", ["pre.sh", "post.sh"])
def test_a_bucket_that_cannot_be_removed_is_named(s3: Installed, script: str) -> None:
    s3.script("pre.sh", *FACTORS)
    state = state_of(s3)
    bucket = f"eeio-{'0' * 32}"
    for endpoint in ("http://bob:hidden@127.0.0.1:1", "http://127.0.0.1:1"):
        state.write_text(f"{endpoint} us-east-1 {bucket}\n")
        (line,) = s3.script(script, *FACTORS, code=1).stderr.splitlines()
        assert line.startswith(f"eeio-s3: {state}: names a bucket of an earlier run that cannot be")
        assert f"or delete this file: {bucket} at 127.0.0.1:1: " in line.replace("http://", "")
        assert "hidden" not in line
    state.unlink()
    s3.script("pre.sh", *FACTORS)


def test_a_state_file_of_others_is_not_believed(s3: Installed, store: Objects) -> None:
    s3.script("pre.sh", *FACTORS)
    state = state_of(s3)
    state.write_text(f"{s3.environment['EEIO_S3_ENDPOINT']} us-east-1 users-own\n")
    assert "does not name a bucket of eeio" in s3.script("pre.sh", *FACTORS, code=1).stderr
    assert store.buckets == {"users-own": {"kept": b"x"}}


@pytest.mark.parametrize(
    ("arguments", "settings", "status", "message"),
    [
        ("", {"EEIO_S3_ENDPOINT": "http://127.0.0.1:1"}, 1, "connection refused"),
        ("", {"EEIO_S3_ENDPOINT": "store"}, 1, "not an endpoint; give a URL"),
        ("", {"EEIO_S3_ENDPOINT": "http://host:abc"}, 1, "'http://host:abc': not an endpoint"),
        ("", {"EEIO_S3_ENDPOINT": "http://host:65536"}, 1, "not an endpoint; give a URL"),
        ("", {"EEIO_S3_ENDPOINT": "http://[::1"}, 1, "not an endpoint; give a URL"),
        ("", {"EEIO_S3_ENDPOINT": "http://host..name"}, 1, "not an endpoint; give a URL"),
        ("", {"EEIO_S3_ENDPOINT": "http://hést"}, 1, "'http://h\\xe9st': not an endpoint"),
        ("", {"EEIO_S3_ENDPOINT": "http://host\r"}, 1, "'http://host\\r': not an endpoint"),
        ("", {"EEIO_S3_ENDPOINT": "http://h:1/tenant/x"}, 1, "has no path; give http://h:1 if"),
        ("", {"EEIO_S3_ENDPOINT": "http://h:1?tenant=x"}, 1, "has no path; give http://h:1 if"),
        ("", {"EEIO_S3_ENDPOINT": "http://127.0.0.1:1/"}, 1, "connection refused"),
        ("", {"AWS_SECRET_ACCESS_KEY": ""}, 1, "no credentials. Set AWS_ACCESS_KEY_ID"),
        ("", {"EEIO_S3_REGION": "a b"}, 2, "EEIO_S3_REGION=a b: give a name"),
        ("", {"EEIO_S3_ENDPOINT": ""}, 2, "no object store: set EEIO_S3_ENDPOINT=URL"),
        ("request_size=1g", {}, 2, "request_size=1g: give a size from 1 to 256m"),
        ("processes=0", {}, 2, "processes=0"),
        ("operation=read", {}, 2, "operation=read: give one of: mixed"),
    ],
)
def test_what_cannot_be_is_rejected(
    s3: Installed, arguments: str, settings: dict[str, str], status: int, message: str
) -> None:
    s3.script("pre.sh", *FACTORS)
    done = s3.run(*FACTORS, *arguments.split(), **settings, code=status)
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("wrong", ["{}\r", "{} ", "schlüssel-{}", "\udcff{}"])
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_a_key_with_a_wrong_character_is_not_shown(
    s3: Installed, store: Objects, name: str, wrong: str
) -> None:
    s3.script("pre.sh", *FACTORS)
    done = s3.run(*FACTORS, code=1, **{name: wrong.format("AKIA99")})
    assert f"{name}: has a space, an end of line or a character" in done.stderr
    assert done.stderr.count("\n") == 1 and "AKIA99" not in done.stderr
    assert store.requests == 0


@pytest.mark.parametrize("endpoint", ["http://bob:hidden@{}", "http://bob:hid/hidden@{}"])
def test_a_password_in_the_endpoint_is_not_shown(
    s3: Installed, store: Objects, endpoint: str
) -> None:
    s3.script("pre.sh", *FACTORS)
    host = f"127.0.0.1:{store.server_address[1]}"
    done = s3.run(*FACTORS, code=1, EEIO_S3_ENDPOINT=endpoint.format(host))
    assert "the endpoint has a user name or a password. Remove both, and set AWS_" in done.stderr
    assert done.stderr.count("\n") == 1 and "hid" not in done.stderr
    assert store.requests == 0
    assert not list(s3.home.glob("*.bucket"))


def test_a_local_server_is_started_and_ended(tmp_path: Path) -> None:
    program = shutil.which("moto_server")
    if program is None or subprocess.run([program, "--help"], capture_output=True).returncode:
        pytest.skip("moto is not installed")
    profile = Installed("s3", tmp_path / "home", tmp_path / "disk")
    profile.install(EEIO_S3_SERVER=program)
    profile.script("pre.sh", *FACTORS)
    capture = profile.capture(tmp_path / "out", dict(word.split("=") for word in FACTORS))
    assert capture.exit_code == 0, capture.text("stderr.txt")
    found = tools.parse("s3", capture)
    assert [p.name for p in found.phases] == ["put", "get", "list", "delete"]
    assert "in memory" in found.notes[0]


def test_a_sweep_needs_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EEIO_S3_ENDPOINT", raising=False)
    profile = profiles.load(CLIENT.parent)
    assert profile.why_not("quick", {"objects": "50"}) is None
    assert "objects=0: give a whole number" in (profile.why_not("quick", {"objects": "0"}) or "")


@pytest.mark.parametrize("script", ["pre.sh", "eeio-s3.sh"])
def test_a_local_server_that_is_gone_is_reported(s3: Installed, script: str) -> None:
    s3.script("pre.sh", *FACTORS)
    conf = s3.home / "tool.conf"
    conf.write_text(conf.read_text().replace("server=", "server=/no/such/moto_server"))
    (line,) = s3.script(script, *FACTORS, code=2, EEIO_S3_ENDPOINT="local").stderr.splitlines()
    assert line.startswith("eeio-s3: no object store: set EEIO_S3_ENDPOINT=URL, or install")


def _program(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_another_server_or_endpoint_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EEIO_S3_ENDPOINT", raising=False)
    profile = profiles.load(CLIENT.parent)
    one, two = _program(home / "one"), _program(home / "two")

    def server() -> str:
        found = installation.install(profile)
        assert installation.find(profile) == found
        (line,) = re.findall("(?m)^server=(.*)", (found.home / "tool.conf").read_text())
        return str(line)

    monkeypatch.setenv("EEIO_S3_SERVER", one)
    assert server() == one
    monkeypatch.setenv("EEIO_S3_SERVER", two)
    assert server() == two
    monkeypatch.setenv("EEIO_S3_ENDPOINT", "http://host:9000")
    assert server() == ""
    monkeypatch.setenv("EEIO_S3_ENDPOINT", "local")
    assert server() == two
    monkeypatch.delenv("EEIO_S3_ENDPOINT")
    assert server() == two


def test_an_installation_keeps_no_password(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EEIO_S3_ENDPOINT", "http://bob:hidden@host")
    with pytest.raises(EeioError, match="the endpoint has a user name or a password") as raised:
        installation.install(profiles.load(CLIENT.parent))
    assert "hidden" not in str(raised.value)
    assert not list(home.glob("data/eeio/installed/eeio-s3*"))


def test_without_a_store_the_installation_reports_the_remedy(tmp_path: Path) -> None:
    profile = Installed("s3", tmp_path / "home", tmp_path / "disk")
    done = profile.install(EEIO_S3_SERVER="no-such-server", code=1)
    assert "no object store: set EEIO_S3_ENDPOINT=URL" in done.stderr
