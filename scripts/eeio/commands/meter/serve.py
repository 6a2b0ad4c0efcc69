"""`eeio meter serve`: the meters for Prometheus."""

import argparse

from eeio.commands.meter.meters import NOWHERE, add_meters, opened
from eeio.errors import EXIT_DONE, RejectedError
from eeio_power import prometheus
from eeio_power.errors import PowerError
from eeio_power.sampler import Sampler


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "serve", help="serve power and energy to Prometheus on loopback",
        description="Serves /metrics in the Prometheus text format until Ctrl-C.",
    )  # fmt: skip
    add_meters(parser)
    parser.add_argument(
        "--address", default="127.0.0.1", help="loopback address (default: 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, default=9797, help="TCP port (default: 9797)")
    parser.set_defaults(action=serve)


def serve(arguments: argparse.Namespace) -> int:
    with opened(arguments.meter) as meters:
        sampler = Sampler(meters, NOWHERE, arguments.rate, keep_s=prometheus.KEEP_S)
        try:
            server = prometheus.server(
                prometheus.Totals(sampler), arguments.address, arguments.port
            )
        except PowerError as error:
            raise RejectedError(str(error)) from error
        with sampler, server:
            print(f"http://{arguments.address}:{server.server_address[1]}/metrics", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return EXIT_DONE
    return EXIT_DONE
