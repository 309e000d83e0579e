"""A file that is no whole Chrome trace gives one sentence that says what is wrong and what to do."""

import gzip
import json

import pytest

import nbkit
from nbkit import TraceError
from nbkit.readers.text_file import text_pieces
from nbkit.schema import SCHEMA_VERSION
from tests.readers.exports import slice_

EVENTS = [slice_("cpu_op", f"aten::op{number}", float(number), 1.0) for number in range(2000)]
WHOLE = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "traceName": "t"}).encode()


def said(tmp_path, content, name="t.json"):
    """Returns what loading a file of this content says; it is one line that names the file."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TraceError) as raised:
        nbkit.load(path)
    text = str(raised.value)
    assert str(path) in text and "\n" not in text and text.endswith(".")
    assert path.read_bytes() == content
    return text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty; a trace holds at least a list of events"),
        (b"hello", "is not a trace: it is neither a folder of Trace.save() nor JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not a trace: it is neither"),
        (b" \n ", "is not a trace: it is neither"),
        (b"[1, 2, 3]", "has 3 list entries, but none is an op or kernel of torch.profiler"),
        (b"[]", "has no events"),
        (b'{"a": 1.5}', "is JSON, but no Chrome trace: it has no 'traceEvents'"),
        (b'{"traceEvents": 3}', "is no Chrome trace: its 'traceEvents' is no list"),
        (b'{"traceEvents": [{"ph": "X", "cat": "v8", "name": "f"}]}', "kernel of torch.profiler (it has 'v8')"),
        (b'{"traceEvents": [], "nbkit": ', "is cut off after 0 events"),
        (b"{3: 4}", "is damaged after 0 events"),
    ],
)  # fmt: skip
def test_other_content(tmp_path, content, sentence):
    assert sentence in said(tmp_path, content)


@pytest.mark.parametrize("end", [len(WHOLE) // 2, len(WHOLE) - 1, len(WHOLE) - 20, 60])
def test_a_truncated_file(tmp_path, end):
    assert "is cut off after" in (text := said(tmp_path, WHOLE[:end]))
    assert "copy it again whole, or export it again" in text


def test_a_truncated_file_says_how_many_events_it_had(tmp_path):
    at = WHOLE.index(b"aten::op1234")
    assert "is cut off after 1,234 events, at character" in said(tmp_path, WHOLE[:at])


def test_a_truncated_gzip(tmp_path):
    packed = gzip.compress(WHOLE)
    assert "ends in the middle of its gzip data" in said(tmp_path, packed[: len(packed) // 2], "t.json.gz")


def test_a_damaged_gzip(tmp_path):
    packed = bytearray(gzip.compress(WHOLE))
    packed[200:300] = b"\xff" * 100
    assert "has damaged gzip data" in said(tmp_path, bytes(packed))


def test_a_fault_in_the_middle_is_found_where_it_is(tmp_path):
    broken = WHOLE.replace(b'"name": "aten::op1500"', b'"name" "aten::op1500"')
    assert "is damaged after 1,500 events, at character" in said(tmp_path, broken)


def test_a_folder_of_traces_names_one(tmp_path):
    (tmp_path / "host.pt.trace.json.gz").write_bytes(gzip.compress(WHOLE))
    with pytest.raises(
        TraceError, match=r"is a folder of 1 Chrome traces; give one of them, such as .*host\.pt\.trace"
    ):
        nbkit.load(tmp_path)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_a_file_of_another_version_of_nbkit(tmp_path, version):
    text = said(tmp_path, b'{"nbkit": {"schema_version": %d}, "traceEvents": []}' % version)
    assert f"has format version {version}, and this nbkit reads format version {SCHEMA_VERSION} only; record" in text


def test_a_damaged_file_of_nbkit(tmp_path):
    head = b'{"nbkit": {"schema_version": %d, "meta": {}, "memory": false, "frames": {}}, "traceEvents": ['
    text = said(tmp_path, head % SCHEMA_VERSION + b'{"ph": "X"}]}')
    assert "is damaged: an event is not as nbkit writes it" in text


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ({"meta": {}}, "its nbkit part has no schema version"),
        ([], "its nbkit part has no schema version"),
        ({"schema_version": SCHEMA_VERSION, "meta": {}, "frames": {}}, "is damaged: 'memory'"),
        (
            {"schema_version": SCHEMA_VERSION, "meta": {}, "memory": False, "frames": {"others": {}}},
            "the frame 'others' is not known; upgrade nbkit-torch",
        ),
    ],
)
def test_a_file_of_nbkit_without_what_it_needs(tmp_path, head, sentence):
    assert sentence in said(tmp_path, json.dumps({"nbkit": head, "traceEvents": []}).encode())


def test_what_cannot_be_opened_is_one_sentence(tmp_path):
    with pytest.raises(TraceError, match=f"^Cannot read {tmp_path}: is a directory"):
        list(text_pieces(tmp_path))
