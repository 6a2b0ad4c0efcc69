"""Suites of a test's own."""

from collections.abc import Iterable
from pathlib import Path

QUICK = "presets:\n  quick: {repetitions: 1, settle_s: 0, idle_s: 0, is_measurement: false}\n"


def written(folder: Path, entries: Iterable[tuple[str, str, str]], protocol: str = QUICK) -> Path:
    """The folder, with a suite of these (tool, arguments, description)."""
    folder.mkdir(parents=True, exist_ok=True)
    experiments = "".join(
        f"<Execute><Test>local/eeio-{tool}-1.0.0</Test><Arguments>{factors}</Arguments>"
        f"<Description>{description}</Description></Execute>"
        for tool, factors, description in entries
    )
    (folder / "suite-definition.xml").write_text(
        f"<PhoronixTestSuite><SuiteInformation><Title>{folder.name}</Title></SuiteInformation>"
        f"{experiments}</PhoronixTestSuite>"
    )
    (folder / "protocol.yaml").write_text(protocol)
    return folder
