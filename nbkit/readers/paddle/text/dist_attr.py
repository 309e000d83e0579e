"""Reads dist_attr: how an operation or a variable is laid over the process mesh.

It is read by its brackets, never by quotes: `tmp_45's dims_mapping` has a lone one.
"""

import re
from typing import Any

from nbkit.readers.paddle.text.pir_text import split
from nbkit.readers.paddle.text.values import value

MARKS = re.compile(r"[\[\](){},;]")
MAPPING = "dims_mapping"
MESH = "process_mesh"


def closing(text: str, position: int) -> int | None:
    """Returns where the bracket that opens at `position` is closed; None if it is not."""
    return split(text, position + 1, MARKS)[1]


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


def _fields(text: str) -> list[str]:
    """Returns the fields between the commas and semicolons outside of brackets."""
    fields, end = split(text, 0, MARKS)
    while end is not None:  # nothing opens this bracket: the field goes on
        more, stop = split(text, end + 1, MARKS)
        fields[-1:] = ["".join([*fields[-1:], text[end], *more[:1]]), *more[1:]]
        end = stop
    return fields


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
