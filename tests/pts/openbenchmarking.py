"""What PTS's upload talks to, on loopback: an HTTP proxy that answers for every host.

`python -m tests.pts.openbenchmarking PORT FOLDER` keeps the fields of the last upload in FOLDER.
"""

import http.server
import json
import sys
from pathlib import Path
from urllib.parse import parse_qs

URL = "http://127.0.0.1/result/2601010-EEIO"


class Handler(http.server.BaseHTTPRequestHandler):
    folder = Path()

    def do_GET(self) -> None:
        self._say(b"PTS")

    def do_POST(self) -> None:
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if fields.get("r") == ["upload_test_result"]:
            body = {key: values[0] for key, values in fields.items()}
            (self.folder / "upload.json").write_text(json.dumps(body))
            self._say(json.dumps({"openbenchmarking": {"upload": {"url": URL}}}).encode())
        else:
            self._say(b"{}")

    def _say(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Handler.folder = Path(sys.argv[2])
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
