"""The flamegraph's state as one block of bytes."""

import json
import zlib
from typing import Any

from nbkit.views.flame_data import flame_state
from nbkit.views.report.flame_payload import payload
from tests.fakes import fake_trace, make_ops, make_trace, timed_trace


def unpacked(packed_bytes: bytes) -> tuple[dict[str, Any], bytes]:
    whole = zlib.decompress(packed_bytes)
    end = 4 + int.from_bytes(whole[:4], "little")
    return json.loads(whole[4:end]), whole[end:]


def test_header_describes_each_column_and_null_states_stay_null() -> None:
    header, packed = unpacked(payload({"flame": flame_state(timed_trace()), "base": None}))
    assert header["base"] is None
    assert (header["flame"]["title"], header["flame"]["count"]) == ("optime", 9)
    assert header["flame"]["columns"][:2] == [["parent", "rows_up", 1, 1], ["start", "running_sum", 1000, 3]]
    widths = sum(width for *_, width in header["flame"]["columns"])
    memory = sum(width for *_, width in header["flame"]["memory"][0]["columns"])
    assert len(packed) == 9 * widths + 3 * memory


def test_bytes_of_a_column_come_lowest_first() -> None:
    header, packed = unpacked(payload({"flame": flame_state(timed_trace())}))
    total = next(place for place, pack in enumerate(header["flame"]["columns"]) if pack[0] == "total")
    start = sum(9 * width for *_, width in header["flame"]["columns"][:total])
    low, middle, high = (packed[start + 9 * plane] for plane in range(3))
    assert low + 256 * middle + 65536 * high == 2 * 100_000


def test_a_hundred_thousand_ops_take_few_bytes_each() -> None:
    assert len(payload({"flame": flame_state(fake_trace(100_000))})) < 525_000


def test_no_ops() -> None:
    header, packed = unpacked(payload({"flame": flame_state(make_trace(make_ops()))}))
    assert (header["flame"]["count"], packed) == (0, b"")
