"""The stream gives the values that json.loads gives, wherever the text is cut into pieces."""

import json

import pytest

from nbkit.readers.chrome.json_stream import JsonError, JsonStream

PLAIN = json.JSONDecoder()
VALUES = [1, -2.5, 12345, True, None, 'a]}\\,"é', [], {}, {"k": [1, {"n": "\u2028"}]}, [[1, 2], []], 7]


def pieces(text, size):
    return iter([text[start : start + size] for start in range(0, len(text), size)])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
def test_items_however_the_text_is_cut(size):
    text = " " + json.dumps(VALUES, indent=1) + "\n"
    assert list(JsonStream(pieces(text, size)).items(PLAIN)) == VALUES


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_fields_around_a_list(size):
    text = json.dumps({"a": 12, "list": VALUES, "b": {"c": 3}})
    stream, found = JsonStream(pieces(text, size)), {}
    for name in stream.fields():
        found[name] = list(stream.items(PLAIN)) if name == "list" else stream.value(PLAIN)
    assert found == {"a": 12, "list": VALUES, "b": {"c": 3}}
    assert stream.position == len(text)


@pytest.mark.parametrize("end", range(1, 60))
def test_every_cut_is_told(end):
    text = json.dumps({"list": [{"a": 1}, {"b": "text"}, 12, True], "after": 12345678})
    stream = JsonStream(pieces(text[:end], 4))
    with pytest.raises(JsonError) as raised:
        for name in stream.fields():
            _ = list(stream.items(PLAIN)) if name == "list" else stream.value(PLAIN)
    assert raised.value.is_cut


def test_a_fault_does_not_read_on():
    read = []
    text = '[{"a" 1}, ' + '{"b": 2}, ' * 1000
    stream = JsonStream(read.append(piece) or piece for piece in pieces(text, 100))
    with pytest.raises(JsonError) as raised:
        list(stream.items(PLAIN))
    assert (raised.value.position, raised.value.is_cut) == (6, False)
    assert len(read) < 5
