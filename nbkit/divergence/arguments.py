"""Compares what two calls of an op were given that is no tensor."""

import json
from collections.abc import Mapping
from typing import Any

from nbkit.step.decode import arguments_of

# To compare runs that differ in these is what people do.
PLACEMENT = ("device", "pin_memory", "non_blocking")
Pairs = Mapping[str, list[Any]]


def other_arguments(left: object, right: object) -> Pairs:
    """Returns the arguments that are not the same on both sides: [left, right] by name.

    `left` and `right` are JSON objects, as `ops.arguments` has them; what is no text has none.
    """
    if left == right:
        return {}
    sides = [arguments_of(text) for text in (left, right)]
    names = [name for name in {**sides[0], **sides[1]} if name not in PLACEMENT]
    pairs = {name: [side.get(name) for side in sides] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def in_words(arguments: Pairs) -> str:
    return "; ".join(
        f"{name} is {_word(left)} on the left, {_word(right)} on the right" for name, (left, right) in arguments.items()
    )


def _word(value: Any) -> str:
    return "not given" if value is None else value if isinstance(value, str) else json.dumps(value)
