"""The begin and the end of a campaign as annotations in Grafana, if EEIO_GRAFANA_URL names one
(https://grafana.com/docs/grafana/latest/developers/http_api/annotations/)."""

import http.client
import json
import os
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eeio.units.external_text import shown

URL = "EEIO_GRAFANA_URL"
TOKEN = "EEIO_GRAFANA_TOKEN"
TIMEOUT_S = 5.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected request would pass the token on to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


@contextmanager
def annotated(campaign: str, suite: str | None, runs: int) -> Iterator[None]:
    """A point at the begin, and a region when the block ends. A failure is one line on stderr."""
    if not os.environ.get(URL):
        yield
        return
    tags = ["eeio", f"host:{socket.gethostname()}"]
    if suite:
        tags.append(f"suite:{suite}")
    begun_ms = _now_ms()
    _send({"time": begun_ms, "tags": tags, "text": f"{campaign}: begin, {runs} runs left"})
    how = "end"
    try:
        yield
    except BaseException as error:
        how = "failed"
        if not isinstance(error, Exception):
            how = "interrupted"
        raise
    finally:
        _send({"time": begun_ms, "timeEnd": _now_ms(), "tags": tags, "text": f"{campaign}: {how}"})


def _now_ms() -> int:
    return round(time.time() * 1000)


def _send(annotation: Mapping[str, Any]) -> None:
    try:
        _post(os.environ[URL], os.environ.get(TOKEN, ""), annotation)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        print(f"eeio: no annotation in Grafana: {shown(reason)}", file=sys.stderr)


def _post(url: str, token: str, annotation: Mapping[str, Any]) -> None:
    """Raises OSError, ValueError or HTTPException if the annotation is not stored."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{URL} is not a http:// or https:// address")
    if not token:
        raise ValueError(f"set {TOKEN} to a service account token")
    if not (token.isascii() and token.isprintable()):
        raise ValueError(f"{TOKEN} contains characters that a header cannot")
    request = urllib.request.Request(  # noqa: S310 - its scheme is checked above
        f"{url.rstrip('/')}/api/annotations",
        json.dumps(annotation).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S):
        pass
