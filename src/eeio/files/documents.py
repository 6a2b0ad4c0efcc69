"""YAML and XML that people wrote, with an end to their size and depth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import yaml

from eeio.errors import LimitError
from eeio.files import inputs


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. Raises OSError, and LimitError as `parse_yaml` does."""
    return parse_yaml(inputs.read_text(path, inputs.DEFINITION_BYTES))


def parse_yaml(text: str) -> Any:
    """YAML's plain types. Raises LimitError, with the line where there is one."""
    if len(text) > inputs.DEFINITION_BYTES:
        raise LimitError(f"longer than {inputs.size(inputs.DEFINITION_BYTES)}")
    try:
        check_flow_depth(text)
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LimitError(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise LimitError(f"nested deeper than {inputs.DEPTH}") from None
    except LimitError:
        raise
    except Exception as error:  # a date 2001-99-99, a key that is a list: different errors
        raise LimitError(f"not YAML: {error!r:.200}") from error
    # An alias is short, and repeats all that it refers to.
    inputs.check_depth(body, inputs.YAML_VALUES)
    return body


def check_flow_depth(text: str) -> None:
    """Raises LimitError for more open brackets than can be meant: PyYAML takes quadratic time."""
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > _FLOW_DEPTH:
                raise LimitError(f"nested deeper than {inputs.DEPTH}")
        elif character in "]}":
            depth = max(0, depth - 1)


# Brackets in texts count too.
_FLOW_DEPTH = 8 * inputs.DEPTH


def read_xml(path: Path) -> ElementTree.Element:
    """The root of an XML file. Raises OSError, and LimitError as `parse_xml` does."""
    return parse_xml(inputs.read_bytes(path, inputs.XML_BYTES))


def parse_xml(content: bytes) -> ElementTree.Element:
    """The root of a document. Raises LimitError for anything but complete, plain XML.

    Entities are declared only in a document type: without one there are no bombs, no files of this
    machine and no requests to others. No definitions or results need one.
    """
    if len(content) > inputs.XML_BYTES:
        raise LimitError(f"longer than {inputs.size(inputs.XML_BYTES)}")
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = elements = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, elements
        depth, elements = depth + 1, elements + 1
        if depth > inputs.XML_DEPTH:
            raise LimitError(f"elements nested deeper than {inputs.XML_DEPTH}")
        if elements > inputs.XML_ELEMENTS:
            raise LimitError(f"more than {inputs.XML_ELEMENTS} elements")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def reject(*_: object) -> int:
        raise LimitError("has a document type or entities, which none of these files needs")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = reject
    parser.EntityDeclHandler = reject
    parser.ExternalEntityRefHandler = reject
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(content, True)
    except LimitError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:
        # Python supports only some of the encodings that a document may name, and expat fewer.
        raise LimitError(f"not complete XML: {error}") from error
    return builder.close()


def keys_of_no_text(part: Any) -> Iterator[object]:
    """Keys that YAML reads as a number, a boolean, a date or null, for the user to quote."""
    if isinstance(part, list):
        for item in part:
            yield from keys_of_no_text(item)
    elif isinstance(part, dict):
        yield from (key for key in part if not isinstance(key, str))
        for value in part.values():
            yield from keys_of_no_text(value)
