"""JSON over HTTP from meters on the network: a time limit, a size limit, no redirects.

HTTP's Digest authentication (RFC 7616) with SHA-256, as Shelly's second generation requires it.

MD5 is not supported: no supported meter requires it.
"""

import base64
import hashlib
import http.client
import json
import os
import re
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eeio.errors import LimitError
from eeio.files import inputs
from eeio.units.quantities import FIGURE
from eeio_power.errors import PowerError
from eeio_power.meters import number_option

_ALGORITHM = "SHA-256"
# Bounded everywhere, so that the time grows only with the header's length.
_PARAMETER = re.compile(
    r'(?<![a-z])([a-z]{1,20})\s{0,4}=\s{0,4}(?:"([^"]{0,512})"|([^\s,"]{1,512}))', re.I
)
# http.client takes 64 KiB; no challenge is as long.
_CHALLENGE_CHARACTERS = 4096
# Characters that a header may contain between quotation marks.
_SAFE = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]*")


@dataclass(frozen=True)
class Credentials:
    """A user and a password, which no text of this object shows."""

    user: str
    password: str = field(repr=False)


def parameters(challenge: str) -> dict[str, str] | None:
    """Those of a `WWW-Authenticate: Digest ...`; None for another scheme."""
    scheme, _, rest = challenge[:_CHALLENGE_CHARACTERS].strip().partition(" ")
    if scheme.lower() != "digest":
        return None
    return {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _PARAMETER.finditer(rest)}


class Digest:
    """Answers one challenge, request after request."""

    def __init__(self, credentials: Credentials, challenge: Mapping[str, str]) -> None:
        """Raises PowerError for a challenge that this cannot answer."""
        algorithm = challenge.get("algorithm", "MD5")
        if algorithm.upper() != _ALGORITHM:
            raise PowerError(
                f"it requires Digest with {algorithm!r:.40}; eeio supports only SHA-256"
            )
        if "auth" not in [word.strip() for word in challenge.get("qop", "").split(",")]:
            raise PowerError("it requires Digest without qop=auth, which eeio does not support")
        self._credentials = credentials
        self._realm, self._nonce = challenge.get("realm", ""), challenge.get("nonce", "")
        self._opaque = challenge.get("opaque")
        if not all(map(_SAFE.fullmatch, (credentials.user, self._realm, self._nonce))):
            raise PowerError(
                "user, realm or nonce of Digest contain characters that a header cannot"
            )
        self._count = 0

    def authorization(self, method: str, uri: str) -> str:
        """The header's value for the next request."""
        self._count += 1
        count, client_nonce = f"{self._count:08x}", secrets.token_hex(16)
        user = self._credentials.user
        secret = _hash(f"{user}:{self._realm}:{self._credentials.password}")
        response = _hash(
            f"{secret}:{self._nonce}:{count}:{client_nonce}:auth:{_hash(f'{method}:{uri}')}"
        )
        opaque = ""
        if self._opaque is not None:
            opaque = f', opaque="{self._opaque}"'
        return (
            f'Digest username="{user}", realm="{self._realm}", nonce="{self._nonce}", '
            f'uri="{uri}", response="{response}", algorithm={_ALGORITHM}, qop=auth, nc={count}, '
            f'cnonce="{client_nonce}"{opaque}'
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


CHUNK = 1 << 14
TIMEOUT_S = 2.0
# The limit for a reading of a value that changes every second.
MOST_TIMEOUT_S = 60.0
_HANG_UP_PAUSE_S = 0.05

OPTIONS = {
    "user": "user name",
    "password_file": "file with the password in its first line; default: $EEIO_METER_PASSWORD",
    "cafile": "certificate to trust, for https",
    "insecure": "yes: do not check the certificate of https",
    "timeout_s": f"how long an answer may take, s (default {TIMEOUT_S:g})",
}
PASSWORD_VARIABLE = "EEIO_METER_PASSWORD"
TOKEN_VARIABLE = "EEIO_METER_TOKEN"
# What a header can contain.
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class JsonClient:
    """Requests to one server. Passwords are neither in its text representation nor in an error."""

    def __init__(
        self,
        url: str,
        authorization: str | None = None,
        context: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        credentials: Credentials | None = None,
        login: str = "user= and the password",
    ) -> None:
        """With `credentials`, the server's challenge is answered (Digest or Basic);
        `authorization` is sent without one. `login` is what to check if the server refuses."""
        address = url
        if "://" not in url:
            address = f"http://{url}"
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PowerError(f"{url}: not an address; give HOST or http://HOST[:PORT]")
        if parts.username or parts.password:
            raise PowerError(
                f"{parts.hostname}: no passwords in addresses, which are stored with the results; "
                "give user= and password_file="
            )
        self.host = parts.hostname
        self.base = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._port = parts.port
        self._headers = {"Accept": "application/json", "Connection": "keep-alive"}
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._credentials = credentials
        self._digest: Digest | None = None
        self._context = context
        self._timeout_s = timeout_s
        self._login = login
        self._connection: http.client.HTTPConnection | None = None
        self.served_s: float | None = None
        """Unix time of the server's clock at the last answer, in whole seconds (`Date`)."""

    def get(self, path: str) -> Any:
        """The decoded answer. Raises PowerError if there is none in time, or it is not JSON."""
        return self._answered(path, None)

    def post(self, path: str, body: Any) -> Any:
        """The same with a body, for what changes nothing: it may be sent twice."""
        return self._answered(path, json.dumps(body).encode())

    def _answered(self, path: str, body: bytes | None) -> Any:
        kept = self._connection is not None
        try:
            return self._decoded(path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            # A server may drop a persistent connection: retry once on a new one.
            if not kept or isinstance(error, TimeoutError):
                raise PowerError(
                    f"{self.host}{_shown(path)}: {error or type(error).__name__}"
                ) from error
        try:
            return self._decoded(path, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise PowerError(
                f"{self.host}{_shown(path)}: {error or type(error).__name__}"
            ) from error

    def close(self) -> None:
        """Drop the connection; the next `get` makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _decoded(self, path: str, body: bytes | None) -> Any:
        status, challenge, answer = self._requested(path, body)
        if status == 401 and self._credentials is not None and self._answers(challenge):
            status, _, answer = self._requested(path, body)
        if status != 200:
            self.close()
            hint = ""
            if status in (401, 403):
                hint = f": check {self._login}"
            raise PowerError(
                f"{self.host}{_shown(path)}: HTTP {status} {http.client.responses.get(status, '')}"
                + hint
            )
        try:
            return inputs.parse_json(answer, inputs.ANSWER_BYTES)
        except LimitError as error:
            raise PowerError(f"{self.host}{_shown(path)}: the answer is {error}") from error

    def _answers(self, challenge: str) -> bool:
        """Whether the server's challenge can be answered. Raises PowerError if not."""
        assert self._credentials is not None
        wanted = parameters(challenge)
        if wanted is not None:
            try:
                self._digest = Digest(self._credentials, wanted)
            except PowerError as error:
                self.close()
                raise PowerError(f"{self.host}: {error}") from error
            return True
        if challenge.strip().lower().startswith("basic"):
            self._headers["Authorization"] = _basic(self._credentials)
            return True
        return False

    def _requested(self, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        """Status, challenge and body of one complete answer within the time limit."""
        headers = dict(self._headers)
        method = "POST"
        if body is None:
            method = "GET"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._digest is not None:
            headers["Authorization"] = self._digest.authorization(method, f"{self.base}{path}")
        deadline_s = time.monotonic() + self._timeout_s
        connection = self._connected()
        # A socket's own limit is for each byte: a head that drips in would take hours.
        done = threading.Event()
        opened: list[socket.socket] = []
        self._watch(connection, opened, done)
        try:
            connection.request(method, f"{self.base}{path}", body, headers)
            # Of an answer that ends with the connection http.client lets go before it is read.
            opened.append(connection.sock)
            response = connection.getresponse()
            data = bytearray()
            while chunk := response.read1(CHUNK):
                data += chunk
                if len(data) > inputs.ANSWER_BYTES:
                    raise http.client.HTTPException(
                        f"an answer of more than {inputs.ANSWER_BYTES >> 20} MiB"
                    )
        except ValueError as error:
            # A path that no request can hold, or a head that http.client cannot read.
            raise http.client.HTTPException(f"no HTTP: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) or time.monotonic() < deadline_s:
                raise
            raise TimeoutError(f"timed out: no complete answer in {self._timeout_s:g} s") from error
        finally:
            done.set()
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"timed out: no complete answer in {self._timeout_s:g} s")
        # Read to its end, but the connection takes no request before it is closed.
        response.close()
        self.served_s = _date_s(response.getheader("Date", ""))
        return response.status, response.getheader("WWW-Authenticate", ""), bytes(data)

    def _watch(
        self,
        connection: http.client.HTTPConnection,
        opened: Sequence[socket.socket],
        done: threading.Event,
    ) -> None:
        threading.Thread(
            target=_hang_up_late, args=(connection, opened, done, self._timeout_s), daemon=True
        ).start()

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._secure:
                self._connection = http.client.HTTPSConnection(
                    self.host, self._port, timeout=self._timeout_s, context=self._context
                )
            else:
                self._connection = http.client.HTTPConnection(
                    self.host, self._port, timeout=self._timeout_s
                )
        return self._connection


def _date_s(header: str) -> float | None:
    try:
        return parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _hang_up_late(
    connection: http.client.HTTPConnection,
    opened: Sequence[socket.socket],
    done: threading.Event,
    timeout_s: float,
) -> None:
    """Ends a connection that is not done in time, again and again: its name may be looked up longer
    than that, so that there is no socket yet."""
    pause_s = timeout_s
    while not done.wait(pause_s):
        pause_s = _HANG_UP_PAUSE_S
        for late in (connection.sock, *opened):
            if late is not None:
                with suppress(OSError):
                    late.shutdown(socket.SHUT_RDWR)


def _shown(path: str) -> str:
    """The path without its query, which may hold a password."""
    return path.partition("?")[0]


def client(
    spec: str,
    options: Mapping[str, str],
    url: str,
    *,
    requested_user: str | None = None,
    token: str | None = None,
) -> JsonClient:
    """A client as the options want it. Raises PowerError if they do not fit.

    With `requested_user`, the user where none is named, the password is not sent before the
    server's challenge. With `token` that is sent, and no password.
    """
    authorization, credentials, login = None, None, "user= and the password"
    if token is not None:
        authorization, login = f"Bearer {token}", "token_file="
    elif requested_user is not None and ("user" in options or "password_file" in options):
        credentials = Credentials(options.get("user", requested_user), password(spec, options))
    elif requested_user is None and "user" in options:
        authorization = _basic(Credentials(options["user"], password(spec, options)))
    timeout_s = number_option(spec, options, "timeout_s", above_zero=True) or TIMEOUT_S
    if timeout_s > MOST_TIMEOUT_S:
        raise PowerError(
            f"meter '{spec}': timeout_s={options['timeout_s']}: {MOST_TIMEOUT_S:g} at most"
        )
    context = None
    if url.startswith("https:"):
        context = tls_context(spec, options)
    try:
        return JsonClient(url, authorization, context, timeout_s, credentials, login)
    except (PowerError, ValueError) as error:
        raise PowerError(f"meter '{spec}': {error}") from error


def tls_context(spec: str, options: Mapping[str, str]) -> ssl.SSLContext:
    """By `cafile` and `insecure`. Raises PowerError if the file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=options.get("cafile"))
    except OSError as error:
        raise PowerError(f"meter '{spec}': cafile={options['cafile']}: {error}") from error
    if options.get("insecure") == "yes":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _basic(credentials: Credentials) -> str:
    text = f"{credentials.user}:{credentials.password}"
    return f"Basic {base64.b64encode(text.encode()).decode('ascii')}"


def password(
    spec: str, options: Mapping[str, str], line: int = 0, variable: str = PASSWORD_VARIABLE
) -> str:
    """From that line of the file, empty if there is none, or from the environment.

    Raises PowerError without a file and a variable.
    """
    if "password_file" in options:
        file = Path(options["password_file"])
        try:
            lines = inputs.read_text(file, inputs.DEFINITION_BYTES).split("\n")
            if line < len(lines):
                return lines[line]
            return ""
        except OSError as error:
            raise PowerError(f"meter '{spec}': {file}: {error.strerror}") from error
        except LimitError as error:
            raise PowerError(f"meter '{spec}': {file}: {error}") from error
    text = os.environ.get(variable)
    if text is None:
        raise PowerError(f"meter '{spec}': no password; give password_file=FILE or set {variable}")
    return text


def token(spec: str, options: Mapping[str, str]) -> str:
    """The first line of `token_file=`, or $EEIO_METER_TOKEN. Raises PowerError without one."""
    if "token_file" in options:
        text = password(spec, {"password_file": options["token_file"]})
    else:
        text = os.environ.get(TOKEN_VARIABLE, "")
    if _TOKEN.fullmatch(text.strip()) is None:
        problem = "is missing"
        if text:
            problem = "is no token"
        raise PowerError(
            f"meter '{spec}': the token {problem}; give token_file=FILE or set {TOKEN_VARIABLE}"
        )
    return text.strip()


def number_at(answer: Any, *keys: str | int) -> float | None:
    """The finite number at `answer[key][key]...`; None if it is not there, null, or no number."""
    for key in keys:
        try:
            answer = answer[key]
        except (KeyError, IndexError, TypeError):
            return None
    if FIGURE.contains(answer):
        return float(answer)
    return None
