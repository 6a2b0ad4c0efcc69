"""HTTP's Digest authentication (RFC 7616) with SHA-256, as Shelly's second generation asks for it.

MD5 is not offered: no meter that is read here wants it.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from eeio_power.errors import PowerError

_ALGORITHM = "SHA-256"
# Bounded everywhere, so that the time grows with the header's length alone.
_PARAMETER = re.compile(
    r'(?<![a-z])([a-z]{1,20})\s{0,4}=\s{0,4}(?:"([^"]{0,512})"|([^\s,"]{1,512}))', re.I
)
# http.client takes 64 KiB; no challenge is as long.
_CHALLENGE_CHARACTERS = 4096
# What a header may hold between quotation marks.
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
            raise PowerError(f"it asks for Digest with {algorithm!r:.40}; only SHA-256 is known")
        if "auth" not in [word.strip() for word in challenge.get("qop", "").split(",")]:
            raise PowerError("it asks for Digest without qop=auth, which is not known")
        self._credentials = credentials
        self._realm, self._nonce = challenge.get("realm", ""), challenge.get("nonce", "")
        self._opaque = challenge.get("opaque")
        if not all(map(_SAFE.fullmatch, (credentials.user, self._realm, self._nonce))):
            raise PowerError("user, realm or nonce of Digest hold what no header can")
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
        opaque = "" if self._opaque is None else f', opaque="{self._opaque}"'
        return (
            f'Digest username="{user}", realm="{self._realm}", nonce="{self._nonce}", '
            f'uri="{uri}", response="{response}", algorithm={_ALGORITHM}, qop=auth, nc={count}, '
            f'cnonce="{client_nonce}"{opaque}'
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
