"""Texts of an ONNX model that are not UTF-8: protobuf gives them as bytes."""

from typing import Any


def mend_texts(message: Any) -> int:
    """Number of such texts in a message and all it holds; each is text afterwards, with U+FFFD for bad bytes."""
    count = 0
    for field, value in message.ListFields():
        if field.message_type is not None:
            count += sum(map(mend_texts, value if field.is_repeated else [value]))
        elif field.type == field.TYPE_STRING:
            if not field.is_repeated:
                if isinstance(value, bytes):
                    setattr(message, field.name, _decoded(value))
                    count += 1
                continue
            for place, one in enumerate(value):
                if isinstance(one, bytes):
                    value[place] = _decoded(one)
                    count += 1
    return count


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
