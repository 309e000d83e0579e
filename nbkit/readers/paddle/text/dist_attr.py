"""Reads dist_attr: how an operation or a variable is laid over the process mesh.

It is read by its brackets, never by quotes: `tmp_45's dims_mapping` has a lone one.
"""

import re
from collections.abc import Iterator
from typing import Any

from nbkit.readers.paddle.text.values import value

BRACKET = re.compile(r"[\[\](){}]")
SEPARATOR = re.compile(r"[\[\](){},;]")
MAPPING = "dims_mapping"
MESH = "process_mesh"


def closing(text: str, position: int) -> int | None:
    """Returns where the bracket that opens at `position` is closed; None if it is not."""
    depth = 0
    for match in BRACKET.finditer(text, position):
        depth += 1 if match[0] in "[({" else -1
        if depth == 0:
            return match.start()
    return None


def parse(text: str) -> dict[str, Any]:
    """Returns the fields of `{...}` by name; its mesh as `process_mesh`, its tensors as a list below `tensors`."""
    fields: dict[str, Any] = {}
    tensors: list[dict[str, Any]] = []
    for field in _fields(text.strip().removeprefix("{").removesuffix("}")):
        key, _, content = field.rpartition(": ") if field.endswith("]") else field.partition(": ")
        key, content = key.strip(), content.strip()
        if key.startswith(MESH):
            fields[MESH] = {"annotated": _annotated(key), **_mesh(content)}
        elif MAPPING in key:
            tensors.append(_tensor(key, content))
        elif key.startswith("partial on dims") and tensors:
            tensors[-1]["partial on dims"] = value(content)
        elif key:
            fields[key] = value(content)
    return {**fields, "tensors": tensors} if tensors else fields


def _fields(text: str) -> Iterator[str]:
    """Yields the fields between the commas and semicolons outside of brackets."""
    depth = start = 0
    for match in SEPARATOR.finditer(text):
        if match[0] in "[({":
            depth += 1
        elif match[0] in "])}":
            depth = max(depth - 1, 0)
        elif depth == 0:
            yield text[start : match.start()].strip()
            start = match.end()
    yield text[start:].strip()


def _mesh(text: str) -> dict[str, Any]:
    """Returns shape, processes and dimension names of `{shape: [2,1], process_ids: [1,3], dim_names: [dp,mp]}`."""
    fields = (field.partition(": ") for field in _fields(text.removeprefix("{").removesuffix("}")))
    return {key.strip(): value(content.strip()) for key, _, content in fields if key.strip()}


def _tensor(key: str, mapping: str) -> dict[str, Any]:
    """Returns one tensor of an operation; `key` is `NAME's dims_mapping (input, non-annotated, parameter)`."""
    name, _, words = key.rpartition(MAPPING)
    name = name.strip().removesuffix("'s")
    kinds = [word.strip() for word in words.strip().strip("()").split(",")]
    row: dict[str, Any] = {"tensor": name} if name else {}
    row |= {side: True for side in ("input", "output") if side in kinds}
    return {**row, "annotated": "annotated" in kinds, "parameter": "parameter" in kinds, MAPPING: value(mapping)}


def _annotated(key: str) -> bool:
    return "(annotated)" in key
