"""Whether a bundle is whole, readable, and fit for publication."""

import hashlib
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from eeio.analysis.characterization import characterize
from eeio.analysis.domain_figures import DomainFigures
from eeio.analysis.ranking import why_figures_unsure
from eeio.errors import EeioError, LimitError, RejectedError
from eeio.exchange import signatures
from eeio.exchange.bundle import REMADE, SUMS
from eeio.record.store import RUNS, Campaign, load
from eeio.report.campaign.tables import row_label

LEAST_REPETITIONS = 6
"""With fewer no difference of two campaigns can be significant at the 5 % level (rank tests)."""
MOST_BYTES = 16 << 30
MOST_MEMBERS = 100_000
"""Of an unpacked archive."""
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True)
class Problem:
    """`kind` is `checksum`, `signature`, `record` or `rule`: changed, without a valid
    signature, unreadable, or not fit for publication."""

    kind: str
    where: str
    what: str


@dataclass(frozen=True)
class Examined:
    """A bundle that may be published has no problems. `signer` is the name in the file of allowed
    signers, or the fingerprint of the key without such a file; None without a signature."""

    problems: tuple[Problem, ...]
    campaigns: tuple[Campaign, ...]
    signer: str | None
    runs: frozenset[str] = frozenset()
    """The SHA-256 of each campaign's runs, by which a copy is recognized."""


def examine(bundle: Path, signers: Path | None = None) -> Examined:
    """Checks a bundle, a folder or its .tar.gz. With a file of allowed `signers`, it must be signed
    by one of them. Raises RejectedError if it is no bundle."""
    with _unpacked(bundle) as folder:
        if not (folder / SUMS).is_file():
            raise RejectedError(f"{bundle}: no bundle of eeio: it has no {SUMS}")
        signer, reason = signatures.signer_of(folder / SUMS, signers)
        unsigned = (
            [] if reason is None else [Problem("signature", signatures.name_of(SUMS), reason)]
        )
        campaigns: list[Campaign] = []
        problems = [*_checksums(folder), *unsigned, *_records(folder, campaigns)]
        return Examined(tuple(problems), tuple(campaigns), signer, _runs(folder))


def _runs(folder: Path) -> frozenset[str]:
    lines = map(_LINE.fullmatch, (folder / SUMS).read_text("utf-8", "replace").splitlines())
    return frozenset(line[1] for line in lines if line and line[2].endswith(f"/{RUNS}"))


@contextmanager
def _unpacked(bundle: Path) -> Iterator[Path]:
    if bundle.is_dir():
        yield bundle
        return
    try:
        with tarfile.open(bundle) as archive, TemporaryDirectory(prefix="eeio-validate-") as name:
            unpacked = 0
            for number, member in enumerate(archive):
                unpacked += member.size
                if unpacked > MOST_BYTES:
                    raise RejectedError(f"{bundle}: more than {MOST_BYTES >> 30} GiB unpacked")
                if number >= MOST_MEMBERS:
                    raise RejectedError(f"{bundle}: more than {MOST_MEMBERS} files")
                _extract(archive, member, Path(name))
            tops = [path for path in Path(name).iterdir() if path.is_dir()]
            if len(tops) != 1:
                raise RejectedError(f"{bundle}: no bundle of eeio: it is not one folder")
            yield tops[0]
    except OSError as error:
        raise RejectedError(f"{bundle}: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError) as error:
        message = str(error).split("\n")[0].rstrip(":")
        raise RejectedError(f"{bundle}: neither a folder nor a .tar.gz: {message}") from error


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Writes a plain file below the folder. Python before 3.11.4 has no filters for archives."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
        raise RejectedError(f"{member.name}: a link, a device or a path outside of the bundle")
    if (content := archive.extractfile(member)) is None:
        return
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file)


def _checksums(folder: Path) -> Iterator[Problem]:
    listed = {SUMS, signatures.name_of(SUMS)}
    for number, line in enumerate((folder / SUMS).read_text("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        name = None
        if match:
            name = PurePosixPath(match[2])
        if match is None or name is None or name.is_absolute() or ".." in name.parts:
            yield Problem("checksum", f"{SUMS}:{number}", "not a SHA-256 and a path in the bundle")
            continue
        listed.add(str(name))
        path = folder / name
        if not path.is_file() or path.is_symlink():
            yield Problem("checksum", str(name), "the file is missing")
            continue
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != match[1]:
                yield Problem("checksum", str(name), "the file was changed")
    for path in sorted(folder.rglob("*")):
        name = PurePosixPath(path.relative_to(folder))
        if not path.is_dir() and str(name) not in listed and name.parts[0] != REMADE:
            yield Problem("checksum", str(name), f"the file is not in {SUMS}")


def _records(folder: Path, campaigns: list[Campaign]) -> Iterator[Problem]:
    """Those of the records; adds each readable campaign to `campaigns`."""
    folders = [path for path in sorted((folder / "data").glob("*")) if path.is_dir()]
    if not folders:
        yield Problem("record", "data", "no campaign in it")
    for path in folders:
        where = f"data/{path.name}"
        try:
            campaign = load(path)
        except (EeioError, LimitError, OSError, ValueError) as error:
            yield Problem("record", where, str(error).replace(f"{folder}/", ""))
            continue
        campaigns.append(campaign)
        for name, what in dict.fromkeys(_broken_rules(campaign)):
            yield Problem("rule", f"{where}: {name}" if name else where, what)


def _broken_rules(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """The experiment, empty for the campaign, and the rule."""
    if not campaign.is_measurement:
        yield "", f"preset {campaign.preset} is no measurement"
    if campaign.is_demo:
        yield "", "the power is fictitious (meter demo)"
    if not campaign.is_complete:
        yield (
            "",
            f"{campaign.stored_runs} of {campaign.planned_runs} runs: the campaign has not ended",
        )
    measured = False
    for row in characterize(campaign):
        if row.experiment is None or row.phase is None:
            continue
        name = f"{row.experiment.level}, {row_label(row)} ({row.experiment.id})"
        power = row.measured
        if row["energy_j_per_gb"] is not None or row["energy_j_per_operation"] is not None:
            measured = True
        if row.n < LEAST_REPETITIONS:
            yield name, f"{row.n} valid repetitions, fewer than {LEAST_REPETITIONS}"
        if power is not None:
            yield from ((name, what) for what in _broken_by(power, row.n))
        if row.durable is False:
            reason = row.why_not_durable or "the window ends before the data is durable"
            yield name, f"not durable: {reason}"
    if not measured:
        yield "", "no energy of a byte or an operation was measured"


def _broken_by(power: DomainFigures, repetitions: int) -> Iterator[str]:
    """Rules that the power of an experiment breaks, which `eeio report` does not rank."""
    if power.n < min(repetitions, LEAST_REPETITIONS):
        yield f"power of {power.n} of {repetitions} repetitions: {power.reason}"
    power_w = power["power_w"]
    if power_w is not None and power_w.median <= 0:
        yield f"the power of the {power.power_domain} is not above 0"
    if unsure := why_figures_unsure(power):
        yield unsure
