"""Defines the layout of a folder of captured calls, and the text of one record.

    capture.json               format, version, what was set when the recording began; first, and so in every folder
    values-00000.safetensors   bytes of storages, each content once, named NUMBER-CRC32; a call names the number
    calls.jsonl                a line per call, {"crc32": "...", "call": {...}}; added once all of its values are there
    places.json                where each call stood in the step: op_id, module, phase, source; at the end

A call names its op, its arguments as JSON data, and `tensors`, which {"tensor": 0} in arguments and outputs stands for.
A tensor has dtype, shape, stride (absent if contiguous) and offset in one of the call's `storages`, which have their
size in bytes and their content `before` and `after` the call (absent if the same, or not needed to run it again).
In place of a content, "parameter:CRC32:NAME" refers to a parameter of the model by its name.
A call that opdiff kept has no outputs but what it `compared`: results in a wide dtype beside those of its reference.
"""

import json
import re
from typing import Any
from zlib import crc32

from nbkit.errors import TraceError

FORMAT, VERSION = "nbkit captured calls", 2
HEAD, CALLS, PLACES = "capture.json", "calls.jsonl", "places.json"
PLACE_COLUMNS = ("op_id", "module", "phase", "source")
IN_TRACE = "calls"  # the folder in that of a saved trace
SHARD = re.compile(r"values-\d{5,}\.safetensors")
REFERENCE = re.compile(r"parameter:([0-9a-f]{8}):(.+)", re.DOTALL)
CONTENT = re.compile(r"(\d+)-([0-9a-f]{8})")
PREFIX = re.compile(rb'\{"crc32":"([0-9a-f]{8})","call":')
Record = dict[str, Any]
encode = json.JSONEncoder(separators=(",", ":")).encode


def reference_name(name: str, checksum: int) -> str:
    """Returns what stands for the content of a parameter."""
    return f"parameter:{checksum:08x}:{name}"


def line_of(record: Record) -> bytes:
    """Returns the line of a call, with its end; as the library makes those of its records (calls/pending_records.h)."""
    text = encode(record).encode()
    return b'{"crc32":"%08x","call":%b}\n' % (crc32(text), text)


def record_of(line: bytes) -> Record:
    """Returns the call of a line. Raises TraceError if it is not whole."""
    match = PREFIX.match(line)
    if match is None or not line.endswith(b"}\n"):
        raise TraceError("its record is cut off or damaged; capture it again")
    text = line[match.end() : -2]
    if crc32(text) != int(match[1], 16):
        raise TraceError("its record is damaged; capture it again")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError("its record is no JSON; capture it again") from error
    if not isinstance(record, dict):
        raise TraceError("its record is no JSON object; capture it again")
    return record
