"""Workloads as YAML, whose errors name the line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import yaml

from eeio.errors import EeioError, LimitError
from eeio.files import documents, inputs
from eeio.guideline.workload import CellKey, ShareOf, Workload, WorkloadEntry, make_workload
from eeio.record.run import FLUSHES, Switch
from eeio.units import quantities as q
from eeio.units.sizes import parse_size

_OPERATIONS = ("read", "write", "mixed")
_SPATIALITIES = ("sequential", "random", "strided")


def load_workload(path: Path) -> Workload:
    """A workload from YAML (docs/explanation/guideline-and-cost.md shows one).

    Raises EeioError, with file, line and key, for anything that is not known or not a mix.
    """
    try:
        text = inputs.read_text(path, inputs.DEFINITION_BYTES)
        documents.check_flow_depth(text)
    except (OSError, LimitError) as error:
        raise EeioError(f"{path}: cannot be read as a workload: {error}") from error
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:  # a character that YAML cannot hold
        raise EeioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        node = loader.get_single_node()
        if node is None:
            raise EeioError(f"{path}: empty; a workload needs the key `workload`")
        return _Reader(path, loader).workload(node)
    except RecursionError as error:
        raise EeioError(f"{path}: nested deeper than {inputs.DEPTH}") from error
    except yaml.YAMLError as error:
        raise EeioError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    finally:
        loader.dispose()


class _Reader:
    """Walks YAML nodes, which still know their lines."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self._path = path
        self._loader = loader

    def workload(self, node: yaml.Node) -> Workload:
        body = self._mapping(node, {"workload"}, {"name", "share_of"})
        name, share_of = self._path.stem, "bytes"
        if "name" in body:
            name = self._scalar(body["name"])
            if not isinstance(name, str) or not name:
                raise self._error(body["name"], "name must be a word")
        if "share_of" in body:
            share_of = self._one_of(body["share_of"], "share_of", get_args(ShareOf))
        listed = body["workload"]
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise self._error(listed, "workload must be a list of one entry or more")
        entries = list(map(self._entry, listed.value))
        try:
            return make_workload(name, entries, cast(ShareOf, share_of))
        except EeioError as error:
            raise EeioError(f"{self._path}: {error}") from error

    def _entry(self, node: yaml.Node) -> WorkloadEntry:
        body = self._mapping(
            node,
            {"operation", "spatiality", "request_size_bytes", "share"},
            {"cache", "flush"},
        )
        cache = {}
        if "cache" in body:
            cache = self._mapping(body["cache"], set(), {"buffer", "disk"})
        operation = self._one_of(body["operation"], "operation", _OPERATIONS)
        if "flush" in body and operation == "read":
            raise self._error(body["flush"], "flush belongs to a write: a read has none")
        key = CellKey(
            operation,
            self._one_of(body["spatiality"], "spatiality", _SPATIALITIES),
            self._size(body["request_size_bytes"]),
            self._switch(cache["buffer"], "cache.buffer") if "buffer" in cache else None,
            self._switch(cache["disk"], "cache.disk") if "disk" in cache else None,
            self._one_of(body["flush"], "flush", FLUSHES) if "flush" in body else None,
        )
        share = self._scalar(body["share"])
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise self._error(body["share"], f"share must be a number, not {share!r:.60}")
        if not (q.FRACTION.contains(share) and share > 0):
            raise self._error(
                body["share"],
                f"share {q.shortened(share)} is not positive, or too large; leave the "
                "entry out if it has none",
            )
        return WorkloadEntry(key, float(share))

    def _mapping(
        self, node: yaml.Node, required: set[str], optional: set[str]
    ) -> dict[str, yaml.Node]:
        known = ", ".join(sorted(required | optional))
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"expected keys ({known})")
        nodes: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self._scalar(key_node)
            if key not in required | optional:
                raise self._error(key_node, f"unknown key {key!r}; known are {known}")
            if key in nodes:
                raise self._error(key_node, f"key {key!r} is repeated")
            nodes[key] = value
        if missing := sorted(required - set(nodes)):
            raise self._error(node, f"missing key {', '.join(map(repr, missing))}")
        return nodes

    def _scalar(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(node, "expected one value, not a list or keys")
        try:
            return self._loader.construct_object(node)
        except yaml.YAMLError:
            raise
        except Exception as error:  # a date 2001-99-99, a tag that does not fit
            raise self._error(node, f"not YAML: {error!r:.200}") from error

    def _one_of(self, node: yaml.Node, name: str, known: Sequence[str]) -> str:
        value = self._scalar(node)
        if value not in known:
            raise self._error(node, f"{name} {value!r} is not one of {', '.join(known)}")
        return cast(str, value)

    def _switch(self, node: yaml.Node, name: str) -> Switch:
        value = self._scalar(node)
        # YAML 1.1 reads a bare on or off as a truth value.
        if isinstance(value, bool):
            value = {True: "on", False: "off"}.get(value, value)
        if value not in get_args(Switch):
            raise self._error(node, f"{name} {value!r} is not one of on, off")
        return cast(Switch, value)

    def _size(self, node: yaml.Node) -> int:
        value = self._scalar(node)
        if isinstance(value, str):
            try:
                value = parse_size(value)
            except EeioError as error:
                raise self._error(node, f"request_size_bytes: {error}") from error
        if not isinstance(value, int) or not q.REQUEST_SIZE.contains(value):
            shown = q.shortened(value)
            raise self._error(node, f"request_size_bytes {shown} is not a positive integer")
        return value

    def _error(self, node: yaml.Node, message: str) -> EeioError:
        return EeioError(f"{self._path}, line {node.start_mark.line + 1}: {message}")
