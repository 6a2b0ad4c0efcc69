"""PUT, GET, LIST and DELETE in an S3 object store: eeio.json in the form that eeio reads.

    client.py run endpoint=URL|local region=NAME size=BYTES objects=N concurrency=N seed=N
                  state=FILE eeio=FILE [server=PROGRAM]
    client.py clean state=FILE
    client.py check endpoint=URL

Stands alone: it runs with nothing but Python's standard library. The access key and its secret are
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS_CA_BUNDLE may name a file of certificates.
Requests are signed (AWS Signature Version 4) and name the bucket in their path. Each thread keeps
one connection. The bucket has a random name, is made before the first phase and removed after the
last one. Its name is in the state file meanwhile, so that `clean` can remove what a killed run
left. Times are CLOCK_MONOTONIC.

With endpoint=local, the server program (moto_server) is started on this machine for the run. The
kernel ends it when this process dies.
"""

import ctypes
import hashlib
import hmac
import http.client
import itertools
import json
import os
import random
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

TIMEOUT_S = 30
SERVER_S = 60
STOP_S = 2  # with the removal, less than the 5 s that a runner waits from SIGTERM to SIGKILL
BUFFERS, BUFFER_BYTES = 8, 64 << 20
CHUNK = 1 << 20
MOST_ANSWER = 8 << 20  # of a list or an error
PERCENTILES = (("p50", 500), ("p95", 950), ("p99", 990), ("p999", 999))  # in thousandths
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
PRINTABLE = re.compile("[!-~]+")
EMPTY = hashlib.sha256(b"").hexdigest()
BUCKET = re.compile(r"eeio-[0-9a-f]{32}")
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


class StoreError(Exception):
    """What the object store did not do, as one line; with the status of its answer, if any.

    `rejected`: no request came to the store, or it rejected the request.
    """

    def __init__(self, line, status=None, rejected=False):
        super().__init__(line)
        self.status, self.rejected = status, rejected or 400 <= (status or 0) < 500


def signature(secret, region, stamp, method, path, query, headers):
    """The signature of a request, and the names of the headers that it covers."""
    lower = {name.lower(): value for name, value in headers.items()}
    names = ";".join(sorted(lower))
    canonical = "\n".join(
        (
            method,
            urllib.parse.quote(path),
            query,
            *(f"{name}:{lower[name]}" for name in sorted(lower)),
            "",
            names,
            lower["x-amz-content-sha256"],
        )
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(
        ("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest())
    )
    key = b"AWS4" + secret.encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex(), names


def parts_of(endpoint):
    """An endpoint's parts; StoreError if it is none."""
    if "@" in endpoint:  # not shown
        raise StoreError(
            "the endpoint has a user name or a password. Remove both, "
            f"and set {' and '.join(CREDENTIALS)}"
        )
    try:
        parts = urllib.parse.urlsplit(endpoint)
        is_one = parts.scheme in ("http", "https") and bool((parts.hostname or "").encode("idna"))
        is_one = is_one and parts.port != 0 and bool(PRINTABLE.fullmatch(endpoint))
    except ValueError:  # of the host or the port
        is_one = False
    if not is_one:
        raise StoreError(f"{endpoint!a}: not an endpoint; give a URL such as http://host:9000")
    if parts.path not in ("", "/") or "?" in endpoint or "#" in endpoint:
        raise StoreError(
            f"{endpoint}: an endpoint has no path; give {parts.scheme}://{parts.netloc} "
            "if the store answers there"
        )
    return parts


class Store:
    """The endpoint; each thread has a connection to it."""

    def __init__(self, endpoint, region):
        self._parts = parts_of(endpoint)
        self.endpoint, self.region = endpoint, region
        self._key, self._secret = (os.environ.get(name, "") for name in CREDENTIALS)
        if not self._key or not self._secret:
            raise StoreError(f"{endpoint}: no credentials. Set {' and '.join(CREDENTIALS)}")
        for name in CREDENTIALS:
            if not PRINTABLE.fullmatch(os.environ[name]):
                raise StoreError(
                    f"{name}: has a space, an end of line or a character that is not ASCII. "
                    "Set it again (from a file with Windows line ends?)"
                )
        self._tls = None
        if self._parts.scheme == "https":
            authorities = os.environ.get("AWS_CA_BUNDLE") or None
            try:
                self._tls = ssl.create_default_context(cafile=authorities)
            except OSError as error:
                raise StoreError(f"AWS_CA_BUNDLE={authorities}: {error}") from error
        self._local = threading.local()

    def _connection(self):
        """The thread's connection, or a new one. `ask` gives it back after a whole answer."""
        found, self._local.connection = getattr(self._local, "connection", None), None
        if found is None:
            where = (self._parts.hostname, self._parts.port)
            if self._tls is None:
                found = http.client.HTTPConnection(*where, timeout=TIMEOUT_S)
            else:
                found = http.client.HTTPSConnection(*where, timeout=TIMEOUT_S, context=self._tls)
            found.connect()
        return found

    def ask(self, method, path, query="", body=b"", body_hash=EMPTY, wanted=(200, 204)):
        """The answer's body up to MOST_ANSWER, and its length; StoreError for another status."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "Host": self._parts.netloc,
            "X-Amz-Date": stamp,
            "X-Amz-Content-SHA256": body_hash,
        }
        signed, names = signature(self._secret, self.region, stamp, method, path, query, headers)
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._key}/{stamp[:8]}/{self.region}/s3/aws4_request,"
            f"SignedHeaders={names},Signature={signed}"
        )
        connection = None
        try:
            connection = self._connection()
            url = urllib.parse.quote(path) + (f"?{query}" if query else "")
            connection.request(method, url, body=body or None, headers=headers)
            answer = connection.getresponse()
            kept, length = bytearray(), 0
            while piece := answer.read(CHUNK):
                length += len(piece)
                kept += piece[: MOST_ANSWER - len(kept)]
        except (OSError, http.client.HTTPException) as error:
            line = f"{self.endpoint}: {_why(error)}"
            raise StoreError(line, rejected=connection is None) from error
        self._local.connection = connection
        if answer.status not in wanted:
            line = f"{self.endpoint}: {method} {answer.status}: {_code(kept, answer)}"
            raise StoreError(line, answer.status)
        return bytes(kept), length


def _why(error):
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S} s"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused. Check the endpoint and that the server runs"
    if isinstance(error, http.client.HTTPException):
        return f"the server ended the connection ({type(error).__name__})"
    return error.strerror or str(error) or type(error).__name__


def parsed(body):
    """The root of an answer; ParseError for one that is not XML, or that defines entities."""
    if b"<!" in body:
        raise ElementTree.ParseError("a document type")
    return ElementTree.fromstring(body)  # noqa: S314 - without a document type


def _code(body, answer):
    """S3's code and message of an error, as one line."""
    with suppress(ElementTree.ParseError, ValueError):
        root = parsed(bytes(body[:65536]))
        found = [root.findtext(name) or "" for name in ("Code", "Message")]
        if any(found):
            return " ".join(": ".join(filter(None, found)).split())[:200]
    return answer.reason[:200]


def listed(store, bucket):
    """The keys of a bucket, and how many requests that took."""
    keys, token, asked = [], None, 0
    while True:
        query = {"list-type": "2", "max-keys": "1000"}
        if token is not None:
            query["continuation-token"] = token
        text = "&".join(
            f"{name}={urllib.parse.quote(query[name], safe='')}" for name in sorted(query)
        )
        body, _ = store.ask("GET", f"/{bucket}", text)
        asked += 1
        try:
            root = parsed(body)
        except ElementTree.ParseError as error:
            raise StoreError(f"{store.endpoint}: LIST: the answer is not XML") from error
        space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
        keys += [node.text or "" for node in root.findall(f"{space}Contents/{space}Key")]
        token = root.findtext(f"{space}NextContinuationToken")
        if root.findtext(f"{space}IsTruncated") != "true" or not token:
            return keys, asked


class Phase:
    """Threads that do `count` tasks of one kind; their latencies and times."""

    def __init__(self, name, count, concurrency, task):
        self._numbers, self._count, self._task = itertools.count(), count, task
        self.name, self.taken, self.requests, self.error = name, [], 0, None
        self._stop = threading.Event()
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(concurrency)]
        self.start_s = time.monotonic()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:  # of a signal: nothing is written once the bucket is removed
            self._stop.set()
            until_s = time.monotonic() + STOP_S
            for thread in threads:
                if thread.is_alive():
                    thread.join(max(0, until_s - time.monotonic()))
            raise
        self.end_s = time.monotonic()
        if self.error is not None:
            raise self.error

    def _work(self):
        taken, requests = [], 0
        try:
            while not self._stop.is_set() and (number := next(self._numbers)) < self._count:
                began_s = time.monotonic()
                requests += self._task(number)
                taken.append(time.monotonic() - began_s)
        except Exception as error:  # of the thread, raised again in the main one
            self.error = self.error or error
            self._stop.set()
        self.taken += taken
        self.requests += requests

    def body(self, operation, size):
        """As eeio.json has it; `size` is None where no data are moved."""
        lasted_s = self.end_s - self.start_s
        moved = len(self.taken) * (size or 0)
        ordered = sorted(self.taken)
        latency = {  # percentiles by nearest rank
            f"latency_{name}_s": ordered[-(-len(ordered) * rank // 1000) - 1]
            for name, rank in PERCENTILES
            if len(ordered) * (1000 - rank) >= 1000
        }
        found = {
            "name": self.name,
            "operation": operation,
            "spatiality": "none" if size is None else "mixed",
            "request_size_bytes": size,
            "bytes_moved": moved,
            "start_monotonic_s": self.start_s,
            "end_monotonic_s": self.end_s,
            "bandwidth_bytes_per_s": moved / lasted_s if size else None,
            "metrics": {
                "operations": self.requests,
                "operations_per_s": self.requests / lasted_s,
                "latency_mean_s": sum(ordered) / len(ordered),
                "latency_max_s": ordered[-1],
                **latency,
            },
        }
        if size is not None:
            found["metrics"]["kept_bytes"] = 0  # not claimed of a drive of this machine
        if operation == "write":
            found["durable_reason"] = "S3 does not report when an object is on the store's drives"
        return found


def measured(store, bucket, factors):
    """The four phases."""
    size, objects = int(factors["size"]), int(factors["objects"])
    concurrency = int(factors["concurrency"])
    source = random.Random(int(factors["seed"]))
    data = [source.randbytes(size) for _ in range(max(1, min(BUFFERS, BUFFER_BYTES // size)))]
    hashes = [hashlib.sha256(each).hexdigest() for each in data]
    order = list(range(objects))
    source.shuffle(order)

    def put(number):
        which = number % len(data)
        store.ask("PUT", f"/{bucket}/{number:09d}", "", data[which], hashes[which])
        return 1

    def get(number):
        _, length = store.ask("GET", f"/{bucket}/{order[number]:09d}")
        if length != size:
            raise StoreError(f"{store.endpoint}: GET: {length} bytes of an object of {size}")
        return 1

    def list_all(_):
        keys, asked = listed(store, bucket)
        if len(keys) != objects:
            raise StoreError(f"{store.endpoint}: LIST: {len(keys)} objects of {objects}")
        return asked

    def delete(number):
        store.ask("DELETE", f"/{bucket}/{order[number]:09d}")
        return 1

    lists = max(concurrency, objects // 10)
    return [
        Phase("put", objects, concurrency, put).body("write", size),
        Phase("get", objects, concurrency, get).body("read", size),
        Phase("list", lists, concurrency, list_all).body("metadata", None),
        Phase("delete", objects, concurrency, delete).body("metadata", None),
    ]


def make(store, bucket):
    """The bucket. A region other than the first one must be named in the request, too."""
    body = b""
    if store.region != "us-east-1":
        place = f"<LocationConstraint>{store.region}</LocationConstraint>"
        body = f"<CreateBucketConfiguration>{place}</CreateBucketConfiguration>".encode()
    store.ask("PUT", f"/{bucket}", "", body, hashlib.sha256(body).hexdigest())


def remove(store, bucket):
    """The bucket and its objects; one that is not there is no error."""
    try:
        for key in listed(store, bucket)[0]:
            store.ask("DELETE", f"/{bucket}/{key}", wanted=(200, 204, 404))
    except StoreError as error:
        if error.status == 404:
            return
        raise
    store.ask("DELETE", f"/{bucket}", wanted=(200, 204, 404))


def _is_removed(store, bucket):
    try:
        remove(store, bucket)
    except (StoreError, SystemExit):  # a second signal
        return False
    return True


class Server:
    """A server of this run's own, on a free port of the loopback interface."""

    def __init__(self, program):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        try:
            self._wait(program, port)
        except BaseException:
            self.end()
            raise

    def _wait(self, program, port):
        until_s = time.monotonic() + SERVER_S
        while time.monotonic() < until_s:
            if self._process.poll() is not None:
                raise StoreError(f"{program}: ended with status {self._process.returncode}")
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.05)
        raise StoreError(f"{program}: does not answer after {SERVER_S} s")

    def end(self):
        self._process.kill()
        self._process.wait()


def run(factors):
    state = Path(factors["state"])
    server = None
    endpoint = factors["endpoint"]
    try:
        if endpoint == "local":
            for name in CREDENTIALS:
                os.environ[name] = "eeio"
            server = Server(factors["server"])
            endpoint = server.endpoint
        store = Store(endpoint, factors["region"])
        bucket = f"eeio-{secrets.token_hex(16)}"
        if server is None:
            state.write_text(f"{endpoint} {factors['region']} {bucket}\n", encoding="ascii")
        try:
            try:
                make(store, bucket)
            except StoreError as error:
                if error.rejected:
                    state.unlink(missing_ok=True)
                raise
            phases = measured(store, bucket, factors)
            remove(store, bucket)
        except BaseException as error:
            # The first error is the one to report.
            if not state.is_file():
                raise
            if isinstance(error, SystemExit):  # there may be no time for the removal
                print(f"eeio-s3: removing the bucket {bucket} at {endpoint}", file=sys.stderr)
            if _is_removed(store, bucket):
                state.unlink()
                raise
            left = f"the bucket {bucket} is left at {endpoint}; the next run here removes it"
            if isinstance(error, StoreError):
                raise StoreError(f"{error}; {left}") from error
            print(f"eeio-s3: {left}", file=sys.stderr)
            raise
        state.unlink(missing_ok=True)
    finally:
        if server is not None:
            server.end()
    where = "a server on this machine, with its objects in memory" if server else endpoint
    return {"schema_version": 1, "phases": phases, "notes": [f"the object store: {where}"]}


def clean(factors):
    """Removes the bucket that the state file names, if it is one of eeio's."""
    state = Path(factors["state"])
    if not state.is_file():
        return
    words = state.read_text(encoding="ascii", errors="replace").split()
    if len(words) != 3 or not BUCKET.fullmatch(words[2]) or not PRINTABLE.fullmatch(words[1]):
        raise StoreError(f"{state}: does not name a bucket of eeio. Remove the file")
    endpoint, region, bucket = words
    try:
        remove(Store(endpoint, region), bucket)
    except StoreError as error:
        where = endpoint.rpartition("@")[2]  # an older eeio took a password
        raise StoreError(
            f"{state}: names a bucket of an earlier run that cannot be removed. Start its store "
            f"and set its keys, or delete this file: {bucket} at {where}: {error}"
        ) from error
    state.unlink()


def leave(number, _):
    sys.exit(128 + number)


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        if words[0] == "clean":
            clean(factors)
            return
        if words[0] == "check":
            parts_of(factors["endpoint"])
            return
        result = run(factors)
    except (StoreError, OSError) as error:
        sys.exit(f"eeio-s3: {error}")
    Path(factors["eeio"]).write_text(json.dumps(result), encoding="ascii")
    for phase in result["phases"]:
        name, rate = phase["name"], phase["bandwidth_bytes_per_s"]
        if rate is not None:
            print(f"{name} bandwidth: {rate / 1e6:.3f} MB/s")
        print(f"{name} rate: {phase['metrics']['operations_per_s']:.3f} Operations/s")


if __name__ == "__main__":
    main(sys.argv[1:])
