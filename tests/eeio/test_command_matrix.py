"""Each command once with the demo meter, without a meter and without root: no traceback, no
unexplained status. The README's commands are among them."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from tests import dummy
from tests.once import once
from tests.plugin import DATA, PARSERS
from tests.started import Starter

from eeio.exchange import bundle as bundles
from eeio.record.store import load

ROOT = Path(__file__).parents[2]
_NOBODY = 65534
_EXPERIMENTS = (
    "level=filesystem operation=read spatiality=sequential sleep_s=0.3 bytes_moved=300000",
    "level=filesystem operation=read spatiality=random sleep_s=0.3 bytes_moved=200000",
)

COMMANDS = """
report before
report before after --format json
report before after --format csv
report before --format markdown
report before --format latex
report before after --format html -o page.html
report before --sort j/gb --columns iops --level filesystem --duty-cycle 10%
report before --columns 'drive w,drive j/gb,drive j/operation'
report before --plots plots --plot-format svg --where operation=read
report before --chart latency,depth,power --plots charts
report before --chart power -o power.svg
compare before after
compare before after --format json
compare before after --format markdown
compare before after --format latex
compare before after --format html -o changed.html
compare before after --fail-if worse:90%
compare before after --fail-if worse:90%:MB/s
compare before after --fail-if worse:900%:time
compare before after --fail-if worse:90%:MB/s --detect 95% --undecided pass
compare --sessions before,after
cost before after --tool dummy --demo
cost before --tool dummy --demo --price-per-kwh 0.3 --grid-g-per-kwh 350 --format json
cost before --tool dummy --demo --format markdown
cost before --tool dummy --demo --duty-cycle 10% --idle-w 20
cost before --tool dummy --demo --format html
cost before --tool dummy --demo --format csv -o cost.csv
cost before after --tool dummy --demo -o cost.tex
compare before after --format csv
study replicate --format html -o papers.html
study replicate machado2017 --format csv
study replicate machado2017 -o machado.md
bench -r 2 --directory target --name NEW --format html -o bench.html true
cost --traditional before --low-power after --tool dummy --workload mix.yaml
export bundle before -o bundle
export pts before -o exported
export before --format parquet -o parquet
query 'SELECT count(*) FROM runs' before
check after --against before --limit 90%:MB/s
check after --against before --limit 90%:MB/s --detect 95% --undecided fail --junit gate.xml
validate packed
table packed -o site
history made
history made --metric MB/s --machine nobodys --format json
meter calibrate --meter demo --reference demo
meter calibrate --forget demo
study reference before
list
list --format json
list --pilots
doctor
doctor --format json
doctor --all
meter list
meter check demo --seconds 1
meter check demo --seconds 1 --suite eeio-suite --preset quick --directory target --format json
record power -- sleep 0.2
plan dummy-suite --directory target
plan dummy-suite --directory target --format json
plan suites/made --directory target --detect 5%
plan suites/made --directory target --detect 5% --fail-if worse:3%:MB/s
plan suites/made --directory target --detect 5% --fail-if worse:3%:MB/s --from before --format json
run dummy-suite --directory target --repetitions 1 --idle 0.2
bench -r 2 --directory target --name NEW 'sleep 0.1' true
bench -r 2 --directory target --name NEW --format json 'sleep 0.1'
bench -r 2 --directory target --name NEW --format markdown 'sleep 0.1'
record trace -- cp mix.yaml target/copy
record trace --format json -o NEW -- cp mix.yaml target/copy
record journal -- true
record frequency
resume before
resume before --extend
study replicate
import old-results --dry-run
import old-results --dry-run --format json
import old-results --power watts.log --power-offset 0
import power third 'csv:w.csv,map=time:time+power_w:watts,lag_s=0,averages_s=0.1' --power-offset 0 --dry-run --format json
import power third 'csv:w.csv,map=time:time+power_w:watts,lag_s=0,averages_s=0.1' --power-offset 0
import power replaced 'csv:w.csv,map=time:time+power_w:watts,lag_s=0,averages_s=0.1' --power-offset 0 --replace
import old-results
fleet collect data/eeio/results/before
fleet submit --show-template
doctor restore
setup --dry-run
setup --no-packages
rm unwanted --yes
profile install
completion bash
profile new mycopy --folder own-profiles --suite try -- cp mix.yaml target/b
""".strip().splitlines()  # noqa: E501


def _all(statuses: set[int]) -> dict[str, set[int]]:
    return dict.fromkeys(("demo", "none", "nobody"), statuses)


# Statuses other than 0. Demo power is not ranked; without power nothing has a cost; the dummy is no
# application, has no entry for PTS and no adaptive campaign; a machine may lack cpufreq or IOR.
_STATUS: dict[str, dict[str, set[int]]] = {
    "validate": _all({1}),  # a bundle of three repetitions
    "history made --metric MB/s --machine": _all({2}),
    "meter calibrate": _all({2}),  # an invented meter is no reference
    "cost --traditional": _all({2}),
    "cost before --tool dummy --demo --duty-cycle": _all({2}),  # it measured its idle power
    "cost": {"none": {2}},
    "report before --chart": {"none": {2}},  # nothing to draw
    "export pts": _all({1}),
    "study reference": _all({2}),
    "resume before --extend": _all({2}),
    "record frequency": _all({0, 1}),
    "profile install": _all({0, 1}),
    "setup --no-packages": _all({2}),  # nobody confirms it
    "record power": {"none": {2}},
    "import old-results --power": _all({3}),  # the log is of another day
    "record journal": {"nobody": {2}},
    "plan eeio-suite --directory target --detect": _all({2}),
}
_TAKES_METER = {"run", "bench", "record trace", "plan", "record power"}


@dataclass
class User:
    """A folder with campaigns `before` and `after`, in which commands are typed."""

    home: Path
    meter: str
    starter: Starter

    def type(self, line: str) -> "subprocess.CompletedProcess[str]":
        fields = shlex.split(
            line.replace("NEW", f"n{len(list(self.home.glob('data/eeio/results/*')))}")
        )
        place = 2 if fields[0] == "record" else 1
        if " ".join(fields[:place]) in _TAKES_METER:
            fields[place:place] = ["--meter", self.meter]
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "EEIO_LOCKS": str(self.home / "locks"),
            "EEIO_TEST_PROFILES": f"{self.home / 'own-profiles'}:{DATA / 'profiles'}",
            "EEIO_SUITES": f"{self.home / 'own-suites'}:{DATA / 'suites'}",
        }
        with contextlib.chdir(self.home):
            return self.starter.run(fields, environment)


def _with_campaigns(home: Path, meter: str, starter: Starter) -> None:
    """Fills a user's folder."""
    for folder in ("target", "locks", "own-profiles", "own-suites"):
        (home / folder).mkdir()
    (home / "mix.yaml").write_text(
        "workload:\n- {operation: read, spatiality: sequential, share: 1}\n"
    )
    (home / "old-results").mkdir()
    for path in (PARSERS / "fio/outputs").glob("jobs-*"):
        shutil.copy(path, home / "old-results")
    (home / "watts.log").write_text(
        "".join(f"{1764000000 + k} #d,-,18,1200,1201{',_' * 16};\n" for k in range(9))
    )
    suite = dummy.suite(home, *_EXPERIMENTS)
    user = User(home, meter, starter)
    for name in ("before", "after"):
        done = user.type(f"run {suite} --directory target --name {name} --repetitions 3 --idle 0.3")
        assert done.returncode == 0, done.stderr
    stored = home / "data/eeio/results"
    # Tests may run in any order: what a command changes or removes has a campaign of its own.
    for name in ("third", "replaced", "unwanted"):
        shutil.copytree(stored / "before", stored / name)
    begin_s = datetime.fromisoformat(load(stored / "before").runs[0].started_utc).timestamp() - 60
    (home / "w.csv").write_text(
        "time,watts\n" + "".join(f"{begin_s + k / 10:.1f},50.{k % 10}\n" for k in range(3000))
    )
    bundles.write(home / "packed", bundles.data_files(load(stored / "before"), False), {})


def _user(home: Path, meter: str, starter: Starter, temporary: pytest.TempPathFactory) -> User:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EEIO_SUITES", str(DATA / "suites"))
        made = once(
            temporary, f"matrix-{meter}", lambda empty: _with_campaigns(empty, meter, starter)
        )
    shutil.copytree(made, home, dirs_exist_ok=True, symlinks=True)
    return User(home, meter, starter)


@pytest.fixture(scope="module")
def user(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, starter: Starter
) -> User:
    home = tmp_path_factory.mktemp(request.param)
    return _user(home, request.param, starter, tmp_path_factory)


@pytest.fixture(scope="module")
def nobody(tmp_path_factory: pytest.TempPathFactory, starter: Starter) -> Iterator[User]:
    """Root takes an unprivileged user's place; it may read all files, as the checkout may be in
    root's home."""
    # Not in pytest's own folder: each start of pytest closes that to other users.
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("no setpriv: install util-linux")
    with tempfile.TemporaryDirectory(prefix="eeio-nobody-") as home:
        made = _user(Path(home), "demo", starter, tmp_path_factory)
        if os.geteuid() != 0:
            yield made
            return
        for path in (made.home, *made.home.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        made.starter = Starter((
            # matplotlib keeps its files there.
            "env", "-u", "XDG_CONFIG_HOME", "-u", "XDG_CACHE_HOME", f"HOME={home}",
            "setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
            "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
            "--bounding-set=-all,+dac_read_search",
        ))  # fmt: skip
        yield made
        made.starter.close()


def _check(done: "subprocess.CompletedProcess[str]", line: str, allowed: set[int]) -> None:
    reported = f"eeio {line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert "Traceback" not in done.stdout + done.stderr, reported
    if re.search(r"gate \S+: 0 of \d+ experiments worse .*, [1-9]\d* not tested", done.stdout):
        # On a busy machine the demo meter has too few samples for phases of 0.3 s.
        allowed = allowed | {1}
    assert done.returncode in allowed, f"status {done.returncode}: {reported}"
    if done.returncode == 0:
        assert done.stdout or done.stderr or "-o" in line or line == "doctor restore", reported
    else:
        assert re.search(r"^(eeio|not tested)\b.*", done.stdout + done.stderr, re.MULTILINE), (
            reported
        )


def _status(line: str, who: str) -> set[int]:
    found = (of[who] for start, of in _STATUS.items() if line.startswith(start) and who in of)
    return next(found, {0})


_DRAW_MUCH = ("export bundle", "report before --plots", "profile install")
"""Seconds of the processor each: by default with the demo meter only."""
_DRAWN_ONCE = [
    pytest.param(line, marks=[pytest.mark.slow] * line.startswith(_DRAW_MUCH)) for line in COMMANDS
]


@pytest.mark.parametrize(("user", "line"), [
    *(("demo", line) for line in COMMANDS),
    *(pytest.param("none", *one.values, marks=one.marks) for one in _DRAWN_ONCE),
], indirect=["user"])  # fmt: skip
def test_as_root_or_the_user_of_the_tests(user: User, line: str) -> None:
    _check(user.type(line), line, _status(line, user.meter))


@pytest.mark.parametrize("line", _DRAWN_ONCE)
def test_without_root(nobody: User, line: str) -> None:
    _check(nobody.type(line), line, _status(line, "nobody"))


def _readme_lines() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"^\| [^|]+ \| `([^`]+)`", text, re.MULTILINE)
    found = [line.partition(" #")[0].removeprefix("sudo ").strip() for line in lines]
    return [line.removeprefix(".venv/bin/") for line in found
            if line.removeprefix(".venv/bin/").startswith("eeio ")]  # fmt: skip


def _of_this_user(line: str) -> str:
    """A line of the README with the names, directories and programs of a test. Campaigns of
    minutes are planned only."""
    line = line.removeprefix("eeio ")
    for shown, here in (
        ("~/eeio-files", "target"), ("/mnt/disk", "target"), (" mine", " before"),
        ("traditional NAME", "traditional before"), ("low-power OTHER", "low-power after"),
        ("/data/a", "mix.yaml"), ("./program", "true"), ("'cp a b' 'rsync a b'", "true"),
    ):  # fmt: skip
        line = line.replace(shown, here)
    if line.startswith("run "):
        return re.sub(r"^run |--name \S+|--meter demo|--filesystem \S+", "", f"plan {line[4:]}")
    if line.startswith("drive review "):
        return "plan eeio-drive-review --preset quick --directory target"
    return line.replace("--suite try", "--suite readme").replace("mycopy", "other")


@pytest.mark.parametrize("user", ["demo", "none"], indirect=True)
@pytest.mark.parametrize("line", [
    pytest.param(line, marks=[pytest.mark.slow] * ("export bundle" in line))
    for line in _readme_lines()
])  # fmt: skip
def test_lines_of_the_readme(user: User, line: str) -> None:
    typed = _of_this_user(line)
    if typed.startswith("cost"):
        typed += " --tool dummy --demo"  # fio's by default
    _check(user.type(typed), typed, _status(typed, user.meter))


def test_the_readme_has_lines() -> None:
    assert len(_readme_lines()) > 15
