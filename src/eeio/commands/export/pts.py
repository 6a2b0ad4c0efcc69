"""`eeio export pts`: a campaign as a result file of the Phoronix Test Suite."""

import sys
from dataclasses import dataclass
from pathlib import Path

from eeio.commands.campaign_folders import campaign_folder
from eeio.commands.output_file import write_file
from eeio.errors import EXIT_DONE, EeioError, LimitError, RejectedError
from eeio.options import Command, argument, option
from eeio.pts import composite, write
from eeio.record import store
from eeio.units.external_text import shown
from eeio.units.names import campaign_name


@dataclass(frozen=True, kw_only=True)
class PtsRequest:
    """`eeio export pts`."""

    campaign: str = argument(
        "NAME|PATH",
        help="campaign name or folder",
    )
    output: Path | None = option(
        "-o",
        "--output",
        value="DIR",
        help="output folder (default: ./NAME)",
        parse=Path,
    )


def export(request: PtsRequest) -> int:
    campaign = store.load(campaign_folder(request.campaign))
    file = write.result_file(campaign)
    if not file.results:
        raise RejectedError(
            f"campaign {campaign.name} has no valid bandwidth or rate to export yet"
        )
    folder: Path = request.output or _named_folder(campaign.name)
    path = folder / "composite.xml"
    if path.exists():
        raise RejectedError(f"{path} exists: choose another folder with -o")
    try:
        write_file(path, composite.render(file))
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    if missing := write.left_out(campaign, file):
        print(
            f"eeio: {shown(campaign.name)}: not in the file, because they have no valid bandwidth "
            f"or rate: {shown('; '.join(missing))}",
            file=sys.stderr,
        )
    print(path)
    return EXIT_DONE


def _named_folder(name: str) -> Path:
    """Here, of the campaign's name, which stands in its campaign.json."""
    try:
        return Path(campaign_name(name))
    except LimitError as error:
        raise RejectedError(f"{error}: give a folder with -o") from error


COMMAND = Command(
    "pts",
    PtsRequest,
    export,
    help="write a Phoronix Test Suite result file",
    description="Writes a campaign as a PTS result file, OUTPUT/composite.xml. Copy the "
    "folder into PTS's test-results/.",
)
