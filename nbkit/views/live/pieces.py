"""Sends traits with binary data by whatever a host carries: within the state, or as text in pieces when asked.

VS Code and Colab end a connection over a message of more than 8 MB, and a host may carry no binary data at all. So a
large value is left out of the state, and the front end counts the bytes that came: it asks for those that did not.
widgets/src/live/whole.js is the other side.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import traitlets

Ids = npt.NDArray[np.int64]
# Of one trait within the state; a flame graph of two traces has three such traits.
INLINE_BYTES = 2_000_000
# Base64 makes 4 MB of these.
PIECE_BYTES = 3_000_000
LENGTH_BYTES = 4


def inline(value: Any, _: object = None) -> Any:
    """Returns what the state has of a value: all of it, or only how many bytes it has; what `to_json` of a trait is."""
    if value is None:
        return None
    data = value if isinstance(value, dict) else {"bytes": value}
    leaves = list(_leaves(data))
    size, version = sum(map(len, leaves)), 0
    for leaf in leaves:
        version = zlib.crc32(leaf, version)
    # Without the version, another value of as many bytes would be no change to a front end that gets no bytes.
    return {**(data if size <= INLINE_BYTES else {}), "binary": size, "version": version}


def ids_in(selection: Mapping[str, Any]) -> Ids:
    """Returns the op ids that a front end has selected, each once and in call order: as bytes, or as their Base64."""
    ids = selection["ids"]
    data = base64.b64decode(ids) if isinstance(ids, str) else ids
    found: Ids = np.unique(np.frombuffer(data, "<i4").astype(np.int64))
    return found


class Pieces:
    """Cuts values of a model's traits into pieces of text; a value is packed once, however many views ask."""

    def __init__(self, model: traitlets.HasTraits) -> None:
        self.model = model
        self.packed: dict[str, tuple[Any, bytes]] = {}

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answers with the piece of `trait` from `offset` on as Base64, and the `size` of all of them in bytes."""
        name = str(message.get("trait"))
        if message.get("kind") != "piece" or self.model.trait_metadata(name, "to_json") is not inline:
            return {"kind": "error", "id": message.get("id"), "message": f"This widget has no binary data {name!r}."}
        whole, start = self._whole(name), max(int(message.get("offset", 0)), 0)
        text = base64.b64encode(whole[start : start + PIECE_BYTES]).decode("ascii")
        return {"kind": "piece", "id": message.get("id"), "text": text, "size": len(whole)}

    def _whole(self, name: str) -> bytes:
        value = getattr(self.model, name)
        if name not in self.packed or self.packed[name][0] is not value:
            self.packed[name] = (value, packed(value))
        return self.packed[name][1]


def packed(value: Any) -> bytes:
    """Deflates a value: the length of its JSON, the JSON with the length in place of each bytes, and these bytes."""
    data = value if isinstance(value, dict) else {"bytes": value}
    text = json.dumps(data, default=lambda leaf: {"$bytes": len(leaf)}, ensure_ascii=False).encode("utf-8", "replace")
    return zlib.compress(len(text).to_bytes(LENGTH_BYTES, "little") + text + b"".join(_leaves(data)), 1)


def _leaves(value: Any) -> Iterator[bytes]:
    """Iterates over the bytes anywhere in a value, in the order of its JSON."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
