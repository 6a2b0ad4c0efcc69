"""The files of a profile and of a suite, from the templates next to this file."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain, product
from pathlib import Path
from xml.sax.saxutils import escape

from eeio.errors import EeioError, RejectedError
from eeio.measure.new_profile.request import LEVEL, Workload, pieces
from eeio.measure.profiles.complete import WITH
from eeio.measure.profiles.suite import DEFINITION, PROTOCOL
from eeio.paths import make_output_folder, shipped
from eeio.record.tools import _figures

_TEMPLATES = Path(__file__).parent / "template"
_LISTED = ("factors.sh", "install.sh", "post.sh")
_SHARED = sorted({*_LISTED, *chain.from_iterable(WITH.get(name, ()) for name in _LISTED)})


def profile_files(workload: Workload) -> dict[str, str]:
    """Name -> text of each file of the profile; those that end in .sh are scripts."""
    values = _values(workload)
    shared = shipped("test-profiles") / "common"  # copied: the folder is the user's
    same = (
        "test-definition.xml",
        "results-definition.xml",
        "presets.conf",
        "tool.sh",
        "factors.conf",
        "pre.sh",
    )
    return {
        **{name: _filled(name, values) for name in same},
        f"eeio-{workload.name}.sh": _filled("run.sh", values),
        "figures.json": json.dumps(_definition(workload), indent=2) + "\n",
        "figures.py": Path(_figures.__file__).read_text(encoding="utf-8"),
        **{name: (shared / name).read_text(encoding="utf-8") for name in _SHARED},
    }


def suite_files(workload: Workload) -> dict[str, str]:
    """Name -> text of a suite with every combination of the factors."""
    values = _values(workload)
    return {
        DEFINITION: _filled("suite-definition.xml", values),
        PROTOCOL: _filled("protocol.yaml", values),
    }


def write(folder: Path, files: Mapping[str, str]) -> None:
    """The files in a folder that is made for them, whole or not at all. RejectedError for one that
    exists, and for root if another user could replace the folder above."""
    if folder.exists() or folder.is_symlink():
        raise RejectedError(f"{folder} exists and is not overwritten")
    try:
        make_output_folder(folder.parent)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, text in files.items():
                path = made / name
                path.write_text(text, encoding="utf-8")
                path.chmod(0o755 if text.startswith("#!") else 0o644)
            made.chmod(0o755)
            made.rename(folder)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise EeioError(f"{folder}: cannot be made: {error.strerror}") from error


def _filled(name: str, values: Mapping[str, str]) -> str:
    text = (_TEMPLATES / f"{name}.template").read_text(encoding="utf-8")
    return re.sub(r"<<(\w+)>>", lambda place: values[place[1]], text)


def _values(workload: Workload) -> dict[str, str]:
    names = tuple(workload.factors)
    scale = _results(workload)[0][1]
    # Always in quotes: shellcheck takes a bare `dd` for a call that was meant.
    quoted = workload.command[0].replace("'", "'\"'\"'")
    footprint = ""
    if workload.footprint:
        footprint = f" footprint={workload.footprint}"
    prepare_words = ""
    if workload.prepare:
        prepare_words = ", and the prepared files"
    return {
        "name": workload.name,
        "description_xml": escape(f"A user's command: {workload.shown}"),
        "scale": scale,
        "proportion": "LIB" if scale in _figures.TIMES else "HIB",
        "options": _options(workload.factors),
        "results": "".join(map(_parser, *zip(*_results(workload), strict=True))),
        "timeout": str(workload.timeout_s),
        "footprint": footprint,
        "program": f"'{quoted}'",
        "arguments": "".join(f" {pieces(word, names)}" for word in workload.command[1:]),
        "level": LEVEL,
        "operation": workload.operation,
        "spatiality": workload.spatiality,
        "buffer": workload.buffer,
        "flush": workload.flush,
        "factors": "".join(
            f"{name} words {','.join(values)} default={values[0]} | of the command\n"
            for name, values in workload.factors.items()
        ),
        "prepare_words": prepare_words,
        "prepare": f"sh -c {pieces(workload.prepare, names)}" if workload.prepare else "exit 0",
        "executes": "".join(_executes(workload)),
    }


def _definition(workload: Workload) -> dict[str, object]:
    moved = workload.moved
    return {
        "schema_version": 1,
        "operation": workload.operation,
        "spatiality": workload.spatiality,
        "factors": {name: values[0] for name, values in workload.factors.items()},
        "figure": workload.figure and {"pattern": workload.figure[0], "unit": workload.figure[1]},
        "bytes": moved and {"pattern" if workload.moved_is_pattern else "size": moved},
    }


def _results(workload: Workload) -> list[tuple[str, str]]:
    """The lines that figures.py prints for PTS: what, in which unit; the first is the profile's."""
    unit = None
    if workload.figure is not None:
        unit = workload.figure[1]
    results = []
    if unit is not None and unit not in _figures.BANDWIDTHS:
        results.append(("run figure", unit))
    if unit in _figures.BANDWIDTHS or workload.moved is not None:
        results.append((f"{workload.operation} bandwidth", "MB/s"))
    return results or [("run time", "s")]


def _parser(what: str, unit: str) -> str:
    return (
        "  <ResultsParser>\n"
        f"    <OutputTemplate>EEIO {what}: #_RESULT_# {unit}</OutputTemplate>\n"
        f"    <LineHint>EEIO {what}:</LineHint>\n"
        f"    <ResultScale>{unit}</ResultScale>\n"
        f"    <ResultProportion>{'LIB' if unit in _figures.TIMES else 'HIB'}</ResultProportion>\n"
        f"    <AppendToArgumentsDescription>{what.title()}</AppendToArgumentsDescription>\n"
        "  </ResultsParser>\n"
    )


def _options(factors: Mapping[str, tuple[str, ...]]) -> str:
    if not factors:
        return ""
    made = "".join(
        "    <Option>\n"
        f"      <DisplayName>{name.replace('_', ' ').title()}</DisplayName>\n"
        f"      <Identifier>{name.replace('_', '-')}</Identifier>\n"
        f"      <ArgumentPrefix>{name}=</ArgumentPrefix>\n"
        "      <DefaultEntry>1</DefaultEntry>\n"
        "      <Menu>\n"
        + "".join(
            f"        <Entry><Name>{value}</Name><Value>{value}</Value></Entry>\n"
            for value in values
        )
        + "      </Menu>\n    </Option>\n"
        for name, values in factors.items()
    )
    return f"  <TestSettings>\n{made}  </TestSettings>\n"


def _executes(workload: Workload) -> Iterator[str]:
    arguments = (
        f"level={LEVEL} operation={workload.operation} spatiality={workload.spatiality} "
        f"buffer={workload.buffer}"
    )
    if workload.operation != "read":
        arguments += f" flush={workload.flush}"
    for values in product(*workload.factors.values()):
        pairs = list(zip(workload.factors, values, strict=True))
        others = "".join(f" {name}={value}" for name, value in pairs)
        shown = " - ".join((workload.name, *(f"{name}: {value}" for name, value in pairs)))
        yield (
            "  <Execute>\n"
            f"    <Test>local/{workload.profile}</Test>\n"
            f"    <Arguments>{arguments}{others}</Arguments>\n"
            f"    <Description>{shown}</Description>\n"
            "  </Execute>\n"
        )
