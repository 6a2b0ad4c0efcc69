"""JSON schemas of our files, made from the types that `typed` checks.

    python -m eeio.schemas              # writes them anew, after a change of a type

The files next to this one are published for other programs. A class's docstring and those of its
fields become descriptions.
"""

import ast
import inspect
import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from eeio.analysis import metrics
from eeio.analysis.domain_figures import DomainFiguresBody
from eeio.analysis.rows import RowBody
from eeio.analysis.summary import Quartiles
from eeio.files.typed import PAIRS, key_of, may_lack
from eeio.options import options_of
from eeio.record.run import SCHEMA_VERSION
from eeio.units.quantities import Quantity

FOLDER = Path(__file__).parent
_Schema = dict[str, Any]
_WIDTH = 110
_PLAIN: Mapping[Any, str] = types.MappingProxyType(
    {str: "string", bool: "boolean", float: "number", int: "integer"}
)
_VERSION: Mapping[str, Any] = types.MappingProxyType(
    {"schema_version": {"enum": list(range(1, SCHEMA_VERSION + 1))}}
)
_IDENTITY = {"experiment_id": {"type": "string", "pattern": "^[0-9a-f]{12}$"}}


def schema(kind: Any, title: str, file: str, more: Mapping[str, Any] | None = None) -> _Schema:
    """The schema of a dataclass; `more` are additional properties of its JSON."""
    parts: dict[str, _Schema] = {}
    complete = _object(kind, parts)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"made of the type {kind.__name__}; do not edit",
        "title": title,
        **complete,
        "description": f"{file}: {complete['description']}",
        "properties": {**(more or {}), **complete["properties"]},
        "required": [*(more or {}), *complete["required"]],
        **({"$defs": dict(sorted(parts.items()))} if parts else {}),
    }


def one_of(kinds: Sequence[Any], title: str) -> _Schema:
    """The schema of JSON that is one of several dataclasses."""
    parts: dict[str, _Schema] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"made of the types {', '.join(kind.__name__ for kind in kinds)}; do not edit",
        "title": title,
        "oneOf": [_of(kind, parts) for kind in kinds],
        "$defs": dict(sorted(parts.items())),
    }


def write(folder: Path, made: Mapping[str, _Schema]) -> None:
    """Writes schemas into their files."""
    for name, body in made.items():
        (folder / name).write_text(text(body), encoding="utf-8")


def text(body: _Schema) -> str:
    """The schema as a file contains it: each part that fits is on one line."""
    return _written(body, "") + "\n"


def _written(value: Any, indent: str) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= _WIDTH or not isinstance(value, dict):
        return flat
    deeper = indent + "  "
    parts = (f"{deeper}{json.dumps(k)}: {_written(v, deeper)}" for k, v in value.items())
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def _keys(kind: Any) -> tuple[dict[str, str], list[str]]:
    """Field -> key in JSON, of a dataclass or a TypedDict; and the required keys."""
    if is_typeddict(kind):
        names = list(get_type_hints(kind))
        required = [name for name in names if name in kind.__required_keys__]
        return dict(zip(names, names, strict=True)), required
    here = [item for item in fields(kind) if item.init]
    names_of = {item.name: key_of(item) for item in here}
    return names_of, [key_of(item) for item in here if not may_lack(item)]


def _object(kind: Any, parts: dict[str, _Schema]) -> _Schema:
    hints = get_type_hints(kind, include_extras=True)
    described = _descriptions(kind)
    names, required = _keys(kind)
    properties = {}
    for name, key in names.items():
        hint = hints[name]
        properties[key] = _of(get_args(hint)[0] if get_origin(hint) is NotRequired else hint, parts)
        if name in described:
            properties[key] |= {"description": described[name]}
    figures = _figures(kind, parts)
    properties |= figures
    required += [name for name in figures if name != "metrics"]
    description = _first(kind.__doc__ or "")
    return {
        **({"description": description} if description else {}),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _figures(kind: Any, parts: dict[str, _Schema]) -> dict[str, _Schema]:
    """The properties of a row, or of one of its power domains, that are metrics: of the registry,
    so that a new one needs no type."""
    of_kind = {
        RowBody: [metric for metric in metrics.METRICS if metric.in_rows],
        DomainFiguresBody: metrics.in_rows(of_domain=True),
    }
    properties: dict[str, _Schema] = {}
    groups: dict[str, dict[str, _Schema]] = {}
    for metric in of_kind.get(kind, ()):
        text = f"{metric.name}: median and quartiles over the valid repetitions, in SI units"
        figure = {**_of(Quartiles | None, parts), "description": text}
        group, _, name = metric.json.rpartition(".")
        if group:
            groups.setdefault(group, {})[name] = figure
        elif name:
            properties[name] = figure
    for group, members in groups.items():
        title = "".join(word.capitalize() for word in group.removesuffix("_s").split("_"))
        parts[title] = {
            "type": "object",
            "properties": members,
            "required": list(members),
            "additionalProperties": False,
        }
        reference: _Schema = {"$ref": f"#/$defs/{title}"}
        properties[group] = reference if group == "marginal" else _union([reference], null=True)
    if properties:
        properties["metrics"] = {
            **_of(Mapping[str, Quartiles], parts),
            "description": "Metrics of the registry that have no key of their own.",
        }
    return properties


def _of(hint: Any, parts: dict[str, _Schema]) -> _Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, mark = arguments
        if mark == PAIRS:
            return {"type": "object", "additionalProperties": {"type": "string"}}
        if base is str:
            return {"enum": list(mark)}
        return _number(mark, base is int)
    if origin in (Union, types.UnionType):
        return _union(
            [_of(one, parts) for one in arguments if one is not type(None)], type(None) in arguments
        )
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(origin, type):
        return _container(origin, arguments, parts)
    if isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint)):
        name = hint.__name__.removeprefix("_").removesuffix("Body")
        if name not in parts:
            parts[name] = {}  # of a type that contains itself
            parts[name] = _object(hint, parts)
        return {"$ref": f"#/$defs/{name}"}
    if hint is Any:
        return {}
    return {"type": _PLAIN[hint]}


def _container(kind: type, arguments: tuple[Any, ...], parts: dict[str, _Schema]) -> _Schema:
    """Of a mapping, a sequence or a tuple."""
    if issubclass(kind, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1], parts)}
    if kind is tuple and arguments[-1] is not Ellipsis:
        each = [_of(hint, parts) for hint in arguments]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    return {"type": "array", "items": _of(arguments[0], parts)}


def _number(quantity: Quantity, whole: bool) -> _Schema:
    least, most = (int(end) if end == int(end) else end for end in (quantity.least, quantity.most))
    return {"type": "integer" if whole else "number", "minimum": least, "maximum": most}


def _union(kinds: list[_Schema], null: bool) -> _Schema:
    if not null:
        return {"anyOf": kinds}
    if len(kinds) > 1 or "$ref" in kinds[0]:
        return {"anyOf": [*kinds, {"type": "null"}]}
    (only,) = kinds
    if "enum" in only:
        return {**only, "enum": [*only["enum"], None]}
    return {**only, "type": [only["type"], "null"]}


def _descriptions(kind: Any) -> dict[str, str]:
    """Field -> the text that follows it in the source of its class, or the help of the option that
    it is."""
    texts: dict[str, str] = {}
    if isinstance(kind, type) and is_dataclass(kind):
        for field, option in options_of(kind):
            texts[field.name] = f"`{option.flags[0]}`: " if option.flags else ""
            texts[field.name] += (option.help or "").replace("%%", "%")
    classes = (
        [kind]
        if is_typeddict(kind)
        else [base for base in kind.__mro__ if "__dataclass_fields__" in vars(base)]
    )
    for each in reversed(classes):
        source = ast.parse(inspect.getsource(each)).body[0]
        assert isinstance(source, ast.ClassDef)
        for statement, after in zip(source.body, source.body[1:], strict=False):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                texts[statement.target.id] = _first(str(after.value.value))
    return texts


def _first(doc: str) -> str:
    """The first paragraph of a docstring, on one line; empty for a dataclass without one."""
    if "(" in doc.partition(" ")[0]:
        return ""
    return " ".join(doc.partition("\n\n")[0].split())
