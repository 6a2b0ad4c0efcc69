"""Former names of commands and options: each does what it did, with one line on stderr."""

import json
from pathlib import Path

import pytest
from tests.plugin import Eeio, InProcess

from eeio.cli import main
from eeio.commands.aliases import translated


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("extend c --most 9", "resume --extend c --most 9"),
        ("power record -- trace x", "record power -- trace x"),
        ("power watch", "meter watch"),
        ("trace -- cp a b", "record trace -- cp a b"),
        ("journal --delayjc -- a", "record journal --delayjc -- a"),
        ("frequency", "record frequency"),
        ("guideline --traditional a --low-power b", "cost --traditional a --low-power b"),
        ("figures a -o f --format=pdf", "report a --plots f --plot-format=pdf"),
        ("replicate pavan2018 d", "study replicate pavan2018 d"),
        ("reference c", "study reference c"),
        ("export c --pts -o d", "export pts c -o d"),
        ("bundle c", "export bundle c"),
        ("states --device d", "drive states --device d"),
        ("restore", "doctor restore"),
        ("install eeio-fio", "profile install eeio-fio"),
        ("new-profile x -- true", "profile new x -- true"),
    ],
)
def test_a_former_command(former: str, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    fields, note = translated(former.split())
    assert fields == now.split() and note is not None
    assert translated(fields) == (fields, None)
    with pytest.raises(SystemExit) as ended:
        main([*former.split()[: 2 if former.startswith("power") else 1], "--help"]
             if "--pts" not in former else ["export", "--pts", "--help"])  # fmt: skip
    assert ended.value.code == 0
    assert capsys.readouterr().err == f"eeio: {note}\n"


def test_json_and_former_options(home: Path, eeio: Eeio) -> None:
    done = eeio("list", "--json")
    assert json.loads(done.stdout) == eeio.json("list")
    assert done.stderr == "eeio: `--json` is now `--format json`\n"
    done = eeio("report", "nothing", "--busy", "10%", code=2)
    assert "`--busy` is now `--duty-cycle`" in done.stderr and "nothing" in done.stderr
    assert "never in use" in eeio("report", "nothing", "--busy", "0", code=2).stderr
    for name, now in (("--duty", "--duty-cycle"), ("--purchase", "--price")):
        assert f"`{name}` is now `{now}`" in eeio("cost", "nothing", name, "0.5", code=2).stderr


def test_former_names_are_in_no_help(in_process: InProcess) -> None:
    for arguments in (["--help"], ["cost", "--help-all"], ["list", "--help"]):
        text = in_process(*arguments).out
        assert "--json" not in text and "--purchase" not in text and "new-profile" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cost"], "which campaign?"),
        (["cost", "--traditional", "a"], "--low-power NAME is missing"),
        (["cost", "--traditional", "a", "--low-power", "b"], "--workload MIX.yaml is missing"),
        (["cost", "a", "--servers", "3"], "--servers: only with --traditional"),
        (["cost", "--price", "3", "--traditional", "a", "--low-power", "b"], "--price: not with"),
        (["resume", "a", "--most", "3"], "only with --extend"),
        (["report", "a", "--where", "size=1"], "--where selects the experiments of --plots"),
        (["record"], "arguments are required: COMMAND"),
    ],
)
def test_options_of_another_form_of_the_command(
    home: Path, arguments: list[str], message: str, eeio: Eeio
) -> None:
    assert message in eeio(*arguments, code=2).stderr
