"""IO500's output of each phase: IOR's report without a summary, or mdtest's.

These are `ior-*.txt` and `mdtest-*.txt` of a result folder. Its own result.txt has scores alone:
GiB/s without the bytes that they are of.
"""

import re

from eeio.importing import mdtest
from eeio_results.tools import ior
from eeio_results.tools.capture import ToolResult


def parse_text(text: str, source: str = "IO500's output") -> ToolResult:
    """The phases of one of those files. Raises ToolOutputError when it is cut off, or of another
    program."""
    if re.search(r"^mdtest-", text, re.M):
        return mdtest.parse_text(text, source)
    return ior.parse_without_summary(text, source)
