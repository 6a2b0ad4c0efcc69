"""Campaigns on disk: one folder each, one line per run, safe in a crash.

NAME/campaign.json   the request, and the order of all runs
NAME/machine.json    the machine's state before the campaign
NAME/idle.json       energy readings of the idle baseline
NAME/runs.jsonl      one run record per line, in the order they ended
NAME/raw/...         the tools' output, one folder per run
NAME/samples/...     power samples (gzip)
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar

from eeio.errors import EeioError, LimitError, SchemaError
from eeio.files import inputs, typed
from eeio.files.trust import make_folder, risk_of_mount_below, why_untrusted
from eeio.record.consistency import idle_disagreement
from eeio.record.design import Design, PlannedRun
from eeio.record.run import DEMO, SCHEMA_VERSION, EnergyReading, IdleMedian, Machine, Phase, Run
from eeio.record.steady_state import State, parted, state, why_not_steady
from eeio.record.tool_label import details
from eeio.units.quantities import COUNT, shortened

_T = TypeVar("_T")

_CAMPAIGN = "campaign.json"
_MACHINE = "machine.json"
_IDLE = "idle.json"
RUNS = "runs.jsonl"
_LOCK = ".lock"
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Campaign:
    """A campaign as it was stored."""

    folder: Path
    design: Design
    machine: Machine
    idle: tuple[EnergyReading, ...]
    idle_reason: str | None
    runs: Sequence[Run]
    set_aside: Sequence[Run] = ()
    """Runs of rounds that are no measurement: before a drive was in its steady state."""
    idle_medians: tuple[IdleMedian, ...] = ()
    """Empty for campaigns from before they were stored, for PTS, and for invalid readings."""
    _derived: dict[str, "Derived"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `once` has computed."""

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def preset(self) -> str:
        return self.design.options.preset

    def idle_median_w(self, reading: EnergyReading) -> float | None:
        """The median of one reading of the idle baseline; None if it was not stored."""
        for median in self.idle_medians:
            if (median.domain, median.meter) == (reading.domain, reading.meter):
                return median.power_w
        return None

    def idle_power_w(self, domain: str) -> float | None:
        """Of the idle baseline; None where that domain has no valid measured reading."""
        for reading in self.idle:
            if reading.domain == domain and reading.valid and reading.kind != "modelled":
                return reading.power_w
        return None

    def runs_by_experiment(self) -> dict[str, list[Run]]:
        """The runs of each experiment, by its id, in their order."""
        runs: dict[str, list[Run]] = {}
        for run in self.runs:
            runs.setdefault(run.experiment.id, []).append(run)
        return runs

    @property
    def tools(self) -> set[str]:
        """Those of its experiments, also of experiments that did not run."""
        return {planned.experiment.tool for planned in self.design.experiments}

    @property
    def details(self) -> Mapping[str, tuple[str, ...]]:
        """Id of each experiment -> how it differs from others with the same tool."""
        return once(self, "details", _details)

    @property
    def has_load(self) -> bool:
        """Whether it has experiments at a share of their maximum."""
        every = (planned.experiment for planned in self.design.experiments)
        return any("load" in dict(experiment.arguments) for experiment in every)

    @property
    def is_measurement(self) -> bool:
        """False for a preset too short to publish from (QUICK)."""
        return self.design.protocol.is_measurement

    @property
    def is_demo(self) -> bool:
        """Whether any of its power is the demo meter's: fictitious."""
        return once(self, "is_demo", _is_demo, bool)

    @property
    def planned_runs(self) -> int:
        return len(self.design.runs)

    @property
    def stored_runs(self) -> int:
        return len(self.runs) + len(self.set_aside)

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs are stored, valid or not."""
        return self.stored_runs >= self.planned_runs

    @property
    def steady_state(self) -> State | None:
        """None if its protocol requires no steady state."""
        rule = self.design.protocol.steady
        if rule is None:
            return None
        return once(
            self, "steady", lambda all: state(all.design, rule, (*all.set_aside, *all.runs)), State
        )

    @property
    def shortcomings(self) -> list[str]:
        """Where it falls short of its protocol; reported before any figure."""
        missing = self.planned_runs - self.stored_runs
        found = []
        if missing:
            found = [
                f"{missing} of {self.planned_runs} runs are not done; continue with `eeio resume "
                f"{self.name}`"
            ]
        reasons = (self.design.ended, why_not_steady(self.steady_state))
        return found + [reason for reason in reasons if reason is not None]


def _details(campaign: Campaign) -> Mapping[str, tuple[str, ...]]:
    design = campaign.design
    planned = [(experiment.experiment, experiment.sized) for experiment in design.experiments]
    return details([*planned, *((one.experiment, None) for one in design.not_measured)])


def _is_demo(campaign: Campaign) -> bool:
    phases: list[Phase] = []
    for run in (*campaign.runs, *campaign.set_aside):
        phases.extend(run.phases)
    readings = (
        *campaign.idle,
        *(reading for phase in phases for reading in phase.energy),
        *(r for phase in phases if phase.until_durable for r in phase.until_durable.energy),
    )
    return any(reading.kind == DEMO for reading in readings)


@dataclass(frozen=True)
class Derived:
    """What is computed of a campaign. What `lasts` is for later commands, too (`saved_figures`):
    it is `saved` already, or `unread`, which is JSON until it is used."""

    value: Any
    lasts: bool = False
    origin: Literal["computed", "saved", "unread"] = "computed"


def computed(campaign: Campaign) -> dict[str, Derived]:
    """What `once` has computed of a campaign, by its name."""
    return campaign._derived


def once(
    campaign: Campaign, name: str, compute: Callable[[Campaign], _T], kind: type[_T] | None = None
) -> _T:
    """What takes long and several documents use: computed once a campaign. A changed copy of a
    campaign begins anew. With its type (`kind`), it is saved for later commands, too."""
    every = computed(campaign)
    derived = every.get(name)
    if derived is not None and derived.origin == "unread" and kind is not None:
        try:
            derived = Derived(typed.read(kind, derived.value), True, "saved")
        except (LimitError, RecursionError):  # not as this eeio saves it
            derived = None
    if derived is None:
        derived = Derived(compute(campaign), kind is not None)
    every[name] = derived
    value: _T = derived.value
    return value


class Store:
    """The folder of one campaign, for the one process that writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def runs_path(self) -> Path:
        return self.folder / RUNS

    @contextmanager
    def made_complete(self) -> Iterator["Store"]:
        """A store elsewhere, which becomes this one when the block ends. A process that is killed
        in it leaves no partial campaign under this name (`remove_half_made` clears the rest).

        EeioError when the name is taken.
        """
        aside = self.folder.with_name(f".{self.folder.name}.new")
        _make_root(aside.parent)
        remove_half_made(aside)
        try:
            aside.mkdir()
            with (aside / _LOCK).open("w") as lock:
                with suppress(OSError):  # not every file system has locks
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new = Store(aside / self.folder.name)
                yield new
                if self.folder.exists():
                    raise FileExistsError(errno.EEXIST, "taken")
                new.folder.rename(self.folder)
                _sync_directory(self.folder.parent)
        except FileExistsError:
            raise EeioError(
                f"{self.folder} exists: continue it with `eeio resume {self.folder.name}`, or "
                "choose another `--name`"
            ) from None
        finally:
            remove_half_made(aside)

    def create(self, design: Design) -> None:
        """Makes the folder with campaign.json; EeioError when the name is taken."""
        _make_root(self.folder.parent)
        try:
            self.folder.mkdir()
        except FileExistsError:
            raise EeioError(
                f"{self.folder} exists: continue it with `eeio resume {self.folder.name}`, or "
                "choose another `--name`"
            ) from None
        for sub in ("raw", "samples"):
            (self.folder / sub).mkdir()
        self.write_design(design)

    def write_design(self, design: Design) -> None:
        """campaign.json; again when repetitions join that were not planned at the start."""
        self.write(_CAMPAIGN, design.to_json())

    def write_machine(self, machine: Machine) -> None:
        self.write(_MACHINE, machine.to_json())

    def write_idle(
        self,
        readings: Sequence[EnergyReading],
        reason: str | None,
        medians: Sequence[IdleMedian] = (),
    ) -> None:
        """Writes the idle baseline; `reason` is why there is none."""
        self.write(
            _IDLE,
            {
                "schema_version": SCHEMA_VERSION,
                "readings": list(map(asdict, readings)),
                "reason": reason,
                **({"medians": list(map(asdict, medians))} if medians else {}),
            },
        )

    def has_idle(self) -> bool:
        return (self.folder / _IDLE).exists()

    def machine(self) -> Machine | None:
        """The machine as it was stored; None before the first start has looked at it."""
        path = self.folder / _MACHINE
        if path.exists():
            return _read_machine(path)
        return None

    def write(self, name: str, body: Mapping[str, Any]) -> None:
        """Writes a file atomically: writes a temporary file, syncs it, renames it."""
        path = self.folder / name
        new = path.with_suffix(".new")
        with _new_file(new) as file:
            json.dump(body, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync_directory(self.folder)

    def append(self, run: Run) -> None:
        """Adds one run; it is on the disk when this returns."""
        self.append_all([run])

    def append_all(self, runs: Sequence[Run]) -> None:
        """Adds runs in their order; all are on the disk when this returns."""
        new = not self.runs_path.exists()
        with self.runs_path.open("a", encoding="utf-8") as file:
            for run in runs:
                file.write(_line(run))
            file.flush()
            os.fsync(file.fileno())
        if new:
            _sync_directory(self.folder)

    def replace_runs(self, runs: Sequence[Run]) -> None:
        """All runs anew, atomically: a process that is killed leaves the ones before."""
        new = self.runs_path.with_suffix(".new")
        with _new_file(new) as file:
            for run in runs:
                file.write(_line(run))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.runs_path)
        _sync_directory(self.folder)

    def drop_partial_line(self) -> None:
        """Removes a last line that a crash or a power cut damaged; its run is run again."""
        if not self.runs_path.exists():
            return
        content = self.runs_path.read_bytes()
        complete = content.rfind(b"\n") + 1
        last = content.rfind(b"\n", 0, max(0, complete - 1)) + 1
        if complete == len(content) and b"\0" in content[last:]:
            complete = last
        if complete != len(content):
            with self.runs_path.open("r+b") as file:
                file.truncate(complete)
                os.fsync(file.fileno())

    def done_indices(self) -> set[int]:
        """Order indices of the runs that are stored completely."""
        if not self.runs_path.exists():
            return set()
        done = set()
        for number, body in _lines(self.runs_path):
            index = None
            if isinstance(body, dict):
                index = body.get("order_index")
            if not isinstance(index, int) or not COUNT.contains(index):
                raise SchemaError(f"{self.runs_path}:{number}: not a run record: no order_index")
            done.add(index)
        return done


def half_made(results: Path) -> list[Path]:
    """Partial campaigns of killed processes in a folder of campaigns."""
    return [path for path in sorted(results.glob(".*.new")) if path.is_dir()]


def delete(folder: Path) -> None:
    """Deletes a campaign; the caller has its lock. Raises EeioError for one with a mount in it. A
    process killed meanwhile leaves no campaign under its name; `remove_half_made` clears the
    rest."""
    if (risk := risk_of_mount_below(folder.resolve())) is not None:
        raise EeioError(
            f"{folder} is not deleted: {risk.path} is a mount point, and what is mounted there "
            f"would be deleted, too. Repair: {risk.repair}"
        )
    aside = folder.with_name(f".{folder.name}.new")
    remove_half_made(aside)
    folder.rename(aside)
    _sync_directory(folder.parent)
    shutil.rmtree(aside)


def _make_root(folder: Path) -> None:
    """The folder of campaigns. It is checked once it exists: in /tmp another user may make it
    first."""
    make_folder(folder)
    if (reason := why_untrusted(folder)) is not None:
        raise EeioError(f"{folder}: no results are written there as root: {reason}")


def _new_file(path: Path) -> TextIO:
    """In the place of one that a killed process left. A link of that name is not followed: a file
    that must be new is opened with O_EXCL."""
    path.unlink(missing_ok=True)
    return path.open("x", encoding="utf-8")


def remove_half_made(aside: Path) -> bool:
    """Deletes a campaign that was never finished, unless a living process makes it. Root deletes
    none that another user could replace, and nobody one with a mount in it."""
    if not aside.is_dir() or aside.is_symlink() or why_untrusted(aside) is not None:
        return False
    if risk_of_mount_below(aside.resolve()) is not None:
        return False
    with suppress(OSError), (aside / _LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _line(run: Run) -> str:
    try:
        typed.check(run)
    except LimitError as error:
        raise SchemaError(f"run {run.order_index} cannot be stored: {error}") from error
    return json.dumps(run.to_json(), separators=(",", ":")) + "\n"


def read_design(folder: Path) -> Design:
    """campaign.json of a folder; SchemaError where eeio cannot have written it."""
    path = folder / _CAMPAIGN
    with _naming(path):
        return Design.from_json(_read_json(path, typed=True))


@dataclass(frozen=True)
class Extent:
    """A campaign's suite and progress."""

    suite: str
    planned_runs: int
    stored_runs: int


def progress(folder: Path) -> Extent:
    """Counts the records without reading them, so a list of many campaigns is quick. Damaged
    records appear when the campaign is loaded. EeioError where there is no campaign."""
    path = folder / _CAMPAIGN
    with _naming(path):
        body = _read_json(path, typed=True)
        order = body.get("order")
        # The entries of the order are alike, and many: check only the first.
        few = body
        if isinstance(order, list):
            few = {**body, "order": order[:1]}
        suite = Design.from_json(few).suite
    return Extent(suite, len(body["order"]), _count_lines(folder / RUNS))


def _count_lines(path: Path) -> int:
    """Complete lines of a file, 0 if there is no file."""
    try:
        count, chunk = 0, bytearray(_CHUNK)
        with inputs.open_file(path) as file:
            while read := file.readinto(chunk):
                # Records are long: searching for each end is three times as quick as counting them.
                end = chunk.find(b"\n", 0, read)
                while end >= 0:
                    count += 1
                    end = chunk.find(b"\n", end + 1, read)
        return count
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        raise SchemaError(f"{path}: {error}") from error


def files(folder: Path) -> list[Path]:
    """The files that a campaign is loaded from."""
    return [path for name in (_CAMPAIGN, _MACHINE, _IDLE, RUNS) if (path := folder / name).exists()]


def load(folder: Path, with_runs: bool = True) -> Campaign:
    """A stored campaign, each record checked against its schema.

    A last line without its end (the campaign was killed while writing, or is running) is passed
    over; any other line that cannot be read is an error that names it.
    """
    design = read_design(folder)
    if not (folder / _MACHINE).exists():
        if (folder / RUNS).exists() and (folder / RUNS).stat().st_size:
            raise SchemaError(f"{folder}: {_MACHINE} is missing, so its runs cannot be used")
        raise EeioError(
            f"{folder}: ended before its first run; continue with `eeio resume {folder.name}`"
        )
    idle_path = folder / _IDLE
    idle: dict[str, Any] = (
        _read_json(idle_path)
        if idle_path.exists()
        else {"readings": [], "reason": "the campaign ended before the idle baseline was measured"}
    )
    with _naming(idle_path):
        readings = tuple(typed.read(EnergyReading, reading) for reading in idle["readings"])
        medians = tuple(map(IdleMedian.from_json, idle.get("medians", ())))
        if (reason := idle_disagreement(readings, medians)) is not None:
            raise LimitError(reason)
        idle_reason = idle["reason"]
        if not isinstance(idle_reason, str | None):
            raise LimitError("reason: not a text")
    read = []
    if with_runs:
        read = _read_runs(folder / RUNS, design)
    set_aside, runs = parted(design, read)
    return Campaign(
        folder=folder,
        design=design,
        machine=_read_machine(folder / _MACHINE),
        idle=readings,
        idle_reason=idle_reason,
        runs=runs,
        set_aside=set_aside,
        idle_medians=medians,
    )


def _read_machine(path: Path) -> Machine:
    body = _read_json(path)
    with _naming(path):
        return Machine.from_json(body)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns errors from a damaged file into a SchemaError that names the file."""
    try:
        yield
    except LimitError as error:
        raise SchemaError(f"{path}: not as eeio writes it: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"{path}: not as eeio writes it: {error!r:.200}") from error


def _read_runs(path: Path, design: Design) -> list[Run]:
    if not path.exists():
        return []
    experiments = {p.experiment.id: p.experiment.to_json() for p in design.experiments}
    runs: dict[int, Run] = {}
    for number, body in _lines(path):
        where = f"{path}:{number}"
        _check_version(where, body)
        planned = _planned(where, body, design, experiments)
        try:
            run = Run.from_json(body, planned.experiment.experiment)
        except LimitError as error:
            raise SchemaError(f"{where}: not a run record: {error}") from error
        if run.order_index in runs:
            raise SchemaError(
                f"{path}: run {run.order_index} is repeated; delete one of the two lines"
            )
        runs[run.order_index] = run
    return list(runs.values())


def _planned(
    where: str, body: Mapping[str, Any], design: Design, experiments: Mapping[str, Any]
) -> PlannedRun:
    """The planned run of a record's index. SchemaError if the record is of another run: its figures
    would appear under factors with which they were not measured."""
    index = body.get("order_index")
    if type(index) is not int or not 0 <= index < len(design.runs):
        raise SchemaError(
            f"{where}: order_index {shortened(index)}, but {_CAMPAIGN} plans "
            f"{len(design.runs)} runs"
        )
    planned = design.runs[index]
    identity = planned.experiment.experiment.id
    for name, wanted in (
        ("experiment_id", identity),
        ("experiment", experiments[identity]),
        ("repetition", planned.repetition),
    ):
        if name not in body:
            raise SchemaError(f"{where}: not a run record: {name} is missing")
        if body[name] != wanted:
            raise SchemaError(
                f"{where}: its {name} differs from that of run {index} in {_CAMPAIGN}: one of "
                "the two files was changed"
            )
    return planned


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and JSON of each complete line. Raises SchemaError that names an invalid line."""
    number = 0
    try:
        with inputs.open_file(path) as file:
            lines = inputs.lines(file, inputs.RECORD_BYTES, inputs.RECORDS_BYTES, errors="strict")
            damaged = False
            for number, line in enumerate(lines, 1):
                if damaged:
                    number -= 1
                    raise LimitError("zeros in the middle of the file")
                # After a power cut some blocks of the last record may be zeros.
                damaged = "\0" in line
                if line.endswith("\n") and not damaged:
                    yield number, inputs.parse_json(line, inputs.RECORD_BYTES, typed=True)
    except OSError as error:
        raise EeioError(f"{path}: {error.strerror}") from error
    except LimitError as error:
        where = f"{path}:{number}" if number else f"{path}"
        raise SchemaError(f"{where}: not a run record: {error}") from error


def _read_json(path: Path, typed: bool = False) -> dict[str, Any]:
    try:
        body = inputs.read_json(path, typed=typed)
    except OSError as error:
        raise SchemaError(
            f"{path}: {error.strerror}; is this the folder of a campaign? `eeio list` shows them"
        ) from error
    except LimitError as error:
        raise SchemaError(f"{path}: {error}") from error
    _check_version(str(path), body)
    return dict(body)


def _check_version(where: str, body: Any) -> None:
    version = None
    if isinstance(body, dict):
        version = body.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise SchemaError(f"{where}: not written by eeio (no schema_version)")
    if version > SCHEMA_VERSION:
        raise SchemaError(
            f"{where}: schema version {version}, but this eeio reads up to {SCHEMA_VERSION}; "
            "use the eeio that wrote it, or a newer one"
        )


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
