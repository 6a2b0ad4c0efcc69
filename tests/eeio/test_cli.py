"""The command line as a whole: what it offers, and what it imports for that."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.plugin import Eeio, InProcess
from tests.processes import ran

from eeio.cli import parser
from eeio.commands import registry
from eeio.commands.campaign_folders import analysis
from eeio.errors import EeioError
from eeio.record.tools import native

_SCIENCE = ("numpy", "scipy", "matplotlib", "jinja2", "pandas")


def _imported(*arguments: str) -> set[str]:
    """The modules there are after a command, which must end with 0."""
    code = (
        "import sys\n"
        "from eeio.cli import main\n"
        "try:\n"
        "    code = main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    code = end.code\n"
        "print('\\n' + ' '.join(name for name in sys.modules if sys.modules[name]))\n"
        "sys.exit(code)"
    )
    done = ran([sys.executable, "-c", code, *arguments])
    return set(done.stdout.splitlines()[-1].split())


def test_every_command_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    text = parser().format_help()
    shown = re.findall(r"^  ([a-z, -]+?)  +\S", text, re.MULTILINE)
    for command in registry.COMMANDS:
        assert command in ", ".join(shown).split(", ")
        alone = parser(command)
        with pytest.raises(SystemExit):
            alone.parse_args([command, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: eeio {command} ")


def test_without_a_command_the_groups_and_examples_are_shown(in_process: InProcess) -> None:
    text = in_process().out
    assert re.findall(r"^(\w+):$", text, re.MULTILINE)[:4] == list(registry.GROUPS)
    examples = re.findall(r"^  eeio (.*?)(?:   |$)", text, re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        parser().parse_args(shlex.split(example))
    assert max(map(len, text.splitlines())) <= 80


def test_the_version_imports_nothing_that_it_does_not_need() -> None:
    """`eeio --version` took 0.5 s and 406 modules."""
    found = _imported("--version")
    assert len(found) < 120
    assert not found & {"jsonschema", "yaml", "eeio_power.meters", "eeio.record.store", *_SCIENCE}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("doctor",),
        ("meter", "list"),
        ("record", "power", "--meter", "modelled", "--", "sleep", "0.5"),
        ("run", "dummy-suite", "--directory", "{home}/target", "--meter", "none", "--name", "c"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_runs_on_the_measured_machine_needs_no_science(
    home: Path, eeio: Eeio, arguments: tuple[str, ...]
) -> None:
    """Boards have none of it, and must not miss it."""
    for name in _SCIENCE:
        (home / "blocked" / name).mkdir(parents=True)
        (home / "blocked" / name / "__init__.py").write_text("raise ImportError('blocked')\n")
    eeio(
        *(argument.format(home=home) for argument in arguments),
        environment={"PYTHONPATH": str(home / "blocked")},
    )


def test_parsers_and_the_stopping_rule_need_no_science() -> None:
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({_SCIENCE!r}))\n"
        "import importlib, pkgutil\n"
        "from eeio import studies, traces\n"
        "from eeio.analysis import characterization\n"
        "from eeio.record import store, tools\n"
        "from eeio.statistics import stopping\n"
        "for package in (tools, traces):\n"
        "    for found in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(found.name)\n"
        "assert all(studies.every().values())\n"
    )
    ran([sys.executable, "-c", code])


def test_too_little_memory_stops_a_campaign_and_stores_no_run_as_invalid(
    home: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(capture: object) -> None:
        raise MemoryError

    monkeypatch.setattr(native, "parse", parse)
    arguments = [
        "--directory",
        str(home / "target"),
        "--meter",
        "none",
        "--allow-memory-filesystem",
    ]
    done = in_process("run", "dummy-suite", "--name", "few", *arguments, code=1)
    assert "eeio: out of memory" in done.err
    assert not (home / "data/eeio/results/few/runs.jsonl").exists()


def test_a_package_that_cannot_be_loaded_is_not_called_missing() -> None:
    with pytest.raises(EeioError, match="cannot be loaded: failed to map segment"), analysis():
        raise ImportError("advice\nfailed to map segment from shared object")
    with pytest.raises(EeioError, match="numpy is not installed"), analysis():
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
