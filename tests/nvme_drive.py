"""eeio with an NVMe drive that is not there: `python -m tests.nvme_drive FILE -- COMMAND ...`.

Admin commands go to a simulator whose state is in FILE, which stands for the controller's node;
every block device is that drive's, and reading one wakes it.
"""

import fcntl
import os
import sys
from pathlib import Path
from typing import Any

from eeio.cli import main
from eeio.machine import nvme_power
from eeio.machine.nvme_power import NvmeController
from eeio_power.meters.nvme import ADMIN_COMMAND
from tests.simulators.nvme_states import FakeNvmeStates


def run(file: Path, arguments: list[str]) -> int:
    rejects = [int(word) for word in os.environ.get("NVME_REFUSES", "").split()]
    fake = FakeNvmeStates(file, rejects=rejects)
    ioctl, preadv = fcntl.ioctl, os.preadv

    def of_drive(fd: int, request: int, *further: Any) -> Any:
        if request == ADMIN_COMMAND:
            return fake.ioctl(fd, request, *further)
        return ioctl(fd, request, *further)

    def reading(*arguments: Any) -> int:
        if not os.environ.get("NVME_CACHES"):
            fake.access()
        return preadv(*arguments)

    fcntl.ioctl = of_drive  # type: ignore[assignment]
    os.preadv = reading  # type: ignore[assignment]
    nvme_power.controller_of = lambda disk, dev=Path("/dev"): NvmeController(file)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[3:]))
