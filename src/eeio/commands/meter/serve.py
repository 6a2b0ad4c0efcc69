"""`eeio meter serve`: the meters for Prometheus."""

import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.meter.meters import meter_option, opened, rate_option
from eeio.commands.output_file import write_file
from eeio.errors import EXIT_DONE, InterruptedCampaignError, RejectedError
from eeio.files import inputs
from eeio.measure.signals import signals_raise
from eeio.options import Command, option
from eeio.paths import check_output_folder
from eeio_power import prometheus_exporter
from eeio_power.errors import PowerError
from eeio_power.sampler import NOWHERE, Sampler

_PAGE_BEGIN = b"# HELP eeio_"
PERIOD_S = 5.0
"""Between two writes of the text file: shorter than the usual scrape interval of 15 s."""


@dataclass(frozen=True, kw_only=True)
class ServeRequest:
    """`eeio meter serve`."""

    meter: tuple[str, ...] = meter_option()
    rate: float = rate_option()
    address: str = option(
        "--address",
        help="loopback address (default: 127.0.0.1)",
        default="127.0.0.1",
    )
    port: int = option(
        "--port",
        help="TCP port (default: 9797)",
        parse=int,
        default=9797,
    )
    textfile: Path | None = option(
        "--textfile",
        value="FILE.prom",
        help="write this file every 5 s instead, for the textfile collector",
        parse=Path,
    )


def serve(request: ServeRequest) -> int:
    file: Path | None = request.textfile
    if file is not None and file.suffix != ".prom":
        raise RejectedError(f"--textfile {file}: node_exporter reads only names that end in .prom")
    if file is not None and not file.parent.is_dir():
        raise RejectedError(f"--textfile {file}: the folder does not exist")
    if file is not None:
        check_output_folder(file.parent)
        _check_replaceable(file)
    with opened(request.meter) as meters:
        sampler = Sampler(meters, NOWHERE, request.rate, keep_s=prometheus_exporter.KEEP_S)
        try:
            with signals_raise("the exporter has ended"):
                if file is not None:
                    with sampler:
                        print(file, flush=True)
                        write_pages(prometheus_exporter.Totals(sampler).collect, file)
                else:
                    _serve(sampler, request.address, request.port)
        except InterruptedCampaignError:
            return EXIT_DONE
    return EXIT_DONE


def _check_replaceable(file: Path) -> None:
    """Raises RejectedError for a link, and for a file that eeio did not write: it is replaced every
    few seconds, and removed at the end."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return
    is_file = stat.S_ISREG(status.st_mode)
    if is_file and inputs.read_bytes(file, inputs.TABLE_BYTES).startswith(_PAGE_BEGIN):
        return
    what = "it is not a plain file"
    if is_file:
        what = "eeio did not write it"
    raise RejectedError(f"--textfile {file} exists, and {what}. Remove it, or name another file")


def _serve(sampler: Sampler, address: str, port: int) -> None:
    try:
        server = prometheus_exporter.server(prometheus_exporter.Totals(sampler), address, port)
    except PowerError as error:
        raise RejectedError(str(error)) from error
    with sampler, server:
        print(f"http://{address}:{server.server_address[1]}/metrics", flush=True)
        server.serve_forever()


def write_pages(
    page: Callable[[], str],
    file: Path,
    period_s: float = PERIOD_S,
    ended: threading.Event | None = None,
) -> None:
    """Writes the page into `file` until `ended`. Removes the file at any end: node_exporter would
    show its last power as the present one."""
    ended = ended or threading.Event()
    try:
        while not ended.wait(period_s):
            write_file(file, page())
    finally:
        file.unlink(missing_ok=True)


COMMAND = Command(
    "serve",
    ServeRequest,
    serve,
    help="serve power and energy to Prometheus on loopback",
    description="Serves /metrics until Ctrl-C, as Prometheus text or OpenMetrics. With "
    "--textfile, writes a file for node_exporter instead.",
)
