"""Arguments checks what a tool is called with against its schema; what does not fit is one sentence."""

from collections.abc import Mapping
from typing import Any

from nbkit.errors import OptionError, nearest

# Python's types of JSON's; true and false are no numbers.
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "array": (list,), "object": (dict,), "boolean": (bool,)
}  # fmt: skip


def checked(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with their defaults. Raises OptionError on one that is unknown, missing or does not fit."""
    properties = schema["properties"]
    for name in given:
        if name not in properties:
            raise OptionError(f"There is no argument {name!r}; {nearest(name, properties)}")
    if missing := [name for name in schema.get("required", []) if given.get(name) is None]:
        raise OptionError(f"The argument {missing[0]!r} is missing: {properties[missing[0]]['description']}.")
    return {name: _value(name, one, given.get(name)) for name, one in properties.items()}


def _value(name: str, schema: Mapping[str, Any], value: Any) -> Any:
    if value is None:
        return schema.get("default")
    check_kind(name, schema["type"], value)
    if "enum" in schema and value not in schema["enum"]:
        raise OptionError(f"{name}={value!r} is not known; {nearest(value, schema['enum'])}")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        allowed = f"from {low:,} to {high:,}" if high is not None else f"{low:,} or more"
        raise OptionError(f"{name}={value:,} is out of range; give {allowed}.")
    if schema["type"] == "array" and "items" in schema:
        for item in value:
            check_kind(f"each item of {name}", schema["items"]["type"], item)
    return value


def check_kind(name: str, kind: str, value: Any) -> None:
    """Raises OptionError if a value is not of a kind of JSON."""
    is_kind = isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not is_kind:
        article = "an" if kind[0] in "aio" else "a"
        raise OptionError(f"{name} is expected to be {article} {kind}, and this is {_described(value)}.")


def _described(value: Any) -> str:
    kind = next((name for name, types in KINDS.items() if type(value) in types), "null")
    return f"{'an' if kind[0] in 'aio' else 'a'} {kind}"
