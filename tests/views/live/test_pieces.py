"""Binary data within the state where they are small, and as text in pieces where they are not, or did not arrive."""

import base64
import json
import zlib

import numpy as np
import pytest

from nbkit.views.flamegraph.widget import FlameGraphModel
from nbkit.views.graph.widget import GraphModel
from nbkit.views.live import pieces
from nbkit.views.live.pieces import ids_in, inline
from nbkit.views.op_table.widget import OpTableModel
from tests.support.fake_graphs import training_graph
from tests.support.fakes import timed_trace

VALUE = {"columns": {"parent": b"abc", "track": b"de"}, "memory": [{"time": b"f"}], "count": 3}


def whole(model, trait: str) -> bytes:
    """What a front end has once it has asked for piece after piece."""
    found, size = b"", 1
    while len(found) < size:
        answer = model.answer({"kind": "piece", "id": "1", "trait": trait, "offset": len(found)})
        assert len(json.dumps(answer)) < 4_100_000
        size, found = answer["size"], found + base64.b64decode(answer["text"])
    return zlib.decompress(found)


def test_a_small_value_is_in_the_state_with_its_count_of_bytes() -> None:
    assert inline(VALUE) == {**VALUE, "binary": 6, "version": zlib.crc32(b"abcdef")}
    assert inline(b"ab")["bytes"] == b"ab"
    assert inline(None) is None


def test_a_large_value_is_left_out(monkeypatch) -> None:
    monkeypatch.setattr(pieces, "INLINE_BYTES", 5)
    assert inline(VALUE) == {"binary": 6, "version": zlib.crc32(b"abcdef")}


def test_the_pieces_are_the_value(monkeypatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 100)
    model = FlameGraphModel(timed_trace())
    data = whole(model, "flame")
    length = int.from_bytes(data[:4], "little")
    outline = json.loads(data[4 : 4 + length])
    assert outline["columns"]["parent"] == {"$bytes": 36}
    columns = b"".join(model.flame["columns"].values())
    assert data[4 + length :].startswith(columns)
    assert (outline["title"], outline["count"]) == (model.flame["title"], 9)


def test_a_new_value_has_new_pieces() -> None:
    model = GraphModel(training_graph(1))
    before = whole(model, "graph")
    model.graph = b"other"
    assert before != whole(model, "graph")
    assert whole(model, "graph").endswith(b"other")


@pytest.mark.parametrize("message", [{"kind": "piece", "trait": "selection"}, {"kind": "rows"}, {}])
def test_what_is_no_binary_data_is_refused(message) -> None:
    answer = FlameGraphModel(timed_trace()).answer({**message, "id": "7"})
    assert (answer["kind"], answer["id"]) == ("error", "7")


def test_ids_come_as_bytes_or_as_text() -> None:
    data = np.array([4, 1, 4], np.int32).tobytes()
    for ids in (data, memoryview(data), base64.b64encode(data).decode()):
        assert ids_in({"ids": ids}).tolist() == [1, 4]


def test_no_state_of_a_table_has_binary_data() -> None:
    assert [name for name, trait in OpTableModel(timed_trace()).traits(to_json=inline).items()] == []
