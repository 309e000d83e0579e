"""Tests logs that are cut, or have junk in them: what was readable is kept, what was not is named."""

import pytest

from nbkit.readers import text_file
from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import attributes, nodes_of

RECORDS = logs.records()
TEXT = logs.text(RECORDS)
JUNK = "\x00\x01\ufffd\x7fELF \x02\x03"


def whole_ops(text: str) -> list[str]:
    """Returns names of the traced ops whose records a cut log has to its end."""
    ops = logs.traced()
    return [op[-1] for op in ops if logs.text([op])[:-1] in text]


@pytest.mark.parametrize("start", range(0, len(TEXT), 997))
def test_cut_anywhere(tmp_path, start):
    for end in range(start, min(start + 997, len(TEXT)), 141):
        cut = TEXT[:end]
        trace = logs.read(tmp_path, cut)
        added = [
            name for name, one in zip(trace.nodes["name"], attributes(trace.nodes), strict=True) if "added" not in one
        ]
        assert added[: len(whole_ops(cut))] == whole_ops(cut)
        lines = [line for line in cut.split("\n")[:-1] if "(OPERATOR:" in line]
        assert len(trace.nodes[trace.nodes["graph"] == "Net_0 compiled"]) >= len(lines)


def test_cut_inside_an_op(tmp_path):
    cut = TEXT[: TEXT.index('op_type_name: "reduce_sum"')]
    trace = logs.read(tmp_path, cut)
    assert trace.nodes["name"].tolist() == ["_Net_0_input.0.0_x", "model.fc.weight", "model.fc-matmul-0"]
    assert (trace.complete, trace.meta["oneflow"]["graphs"][0]["left_out"]) == (False, ["reduce_sum-1"])
    assert [(one["text"], one["reason"]) for one in trace.meta["skipped_lines"]] == [
        ("reduce_sum-1", "its text is cut")
    ]


def test_cut_before_the_configuration_of_an_op(tmp_path):
    cut = TEXT[: TEXT.index("user_conf {")]
    trace = logs.read(tmp_path, cut)
    assert trace.nodes["name"].tolist() == ["_Net_0_input.0.0_x", "model.fc.weight"]
    assert (trace.complete, trace.meta["skipped_lines"][0]["text"]) == (False, "model.fc-matmul-0")


def test_cut_inside_the_listing(tmp_path):
    cut = TEXT[: TEXT.index("(OPERATOR: model.fc.weight-m") + 60]
    trace = logs.read(tmp_path, cut)
    assert nodes_of(trace, "Net_0 compiled")["module"].tolist() == ["model.fc"] * 4
    assert trace.modules["module"].tolist() == ["model", "model.fc"]
    assert [one["reason"] for one in trace.meta["skipped_lines"]] == [
        "an operator that is cut or damaged",
        "the log ends before this record does",
    ]
    assert not trace.complete


def test_lines_count_from_1(tmp_path):
    head = "(GRAPH:Net_0:Net): (\n  (CONFIG:config:GraphConfig(training=False, ))\n"
    assert [one["line"] for one in logs.read(tmp_path, head).meta["skipped_lines"]] == [1]


@pytest.mark.parametrize("lines", [1, 3])
def test_cut_inside_a_traceback(tmp_path, lines):
    why = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    y = net(x)"][:lines]
    trace = logs.read(tmp_path, TEXT + "\n".join(why) + "\n")
    assert not trace.complete and trace.nodes.equals(logs.read(tmp_path, TEXT).nodes)
    whole = logs.read(tmp_path, TEXT + "\n".join([*why, "RuntimeError: shapes differ"]) + "\n")
    assert whole.meta["error"]["message"] == "RuntimeError: shapes differ"


def test_begins_in_the_middle(tmp_path):
    whole = nodes_of(logs.read(tmp_path, TEXT), "Net_0 traced")["name"].tolist()
    late = logs.read(tmp_path, TEXT[TEXT.index("model.fc-matmul-0") - 300 :])
    assert nodes_of(late, "Net_0 traced")["name"].tolist() == whole[1:]


def test_junk_between_records(tmp_path):
    clean = logs.read(tmp_path, TEXT)
    trace = logs.read(
        tmp_path, logs.text([part for record in RECORDS[:-1] for part in (record, [JUNK])] + [RECORDS[-1]])
    )
    assert logs.same(clean, trace, but=["line"]) == {}
    assert trace.meta["skipped_lines"] == []


def test_junk_inside_an_op_damages_only_that(tmp_path):
    lines = TEXT.split("\n")
    at = lines.index('  op_type_name: "reduce_sum"')
    trace = logs.read(tmp_path, "\n".join([*lines[:at], JUNK, *lines[at:]]))
    found = {
        name: one for name, one in zip(trace.nodes["name"], attributes(trace.nodes), strict=True) if "damaged" in one
    }
    assert list(found) == ["reduce_sum-1"]
    assert len(trace.nodes) == 17
    assert [(one["line"], one["reason"]) for one in trace.meta["skipped_lines"]] == [
        (at + 1, "no field of reduce_sum-1")
    ]


@pytest.mark.parametrize("lost", ["try", "text", "add", "name"])
def test_op_of_which_one_line_is_lost(tmp_path, lost):
    records = logs.traced()
    head = {"try": 0, "text": 5, "add": -2, "name": -1}[lost]
    records[3][head] = JUNK
    trace = logs.read(tmp_path, logs.text(records))
    assert trace.nodes["name"].tolist() == [
        record[-1] if record[-1] != JUNK else "reduce_sum-1" for record in logs.traced()
    ]
    assert trace.nodes["op"].iloc[3] == "reduce_sum"


def test_op_whose_text_is_lost_is_damaged(tmp_path):
    records = logs.traced()
    records[3] = records[3][-2:]
    trace = logs.read(tmp_path, logs.text(records))
    assert attributes(trace.nodes)[3] == {"damaged": True}
    assert [(one["text"], one["reason"]) for one in trace.meta["skipped_lines"]] == [
        ("reduce_sum-1", "an op whose text is lost")
    ]


def test_what_is_too_long_or_too_much_to_be_told_whole_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(text_file, "LONGEST_LINE", 10_000)
    lost = [f"reduce_sum-{number}" for number in range(1001)]
    last = logs.traced()[3][-2:]
    records = [[line.replace("reduce_sum-1", name) for line in last] for name in lost]
    meta = logs.read(tmp_path, logs.text([*logs.traced()[:3], *records]) + "x" * 10_001).meta
    assert [one["text"] for one in meta["skipped_lines"]] == lost[:1000]
    assert meta["notes"] == [
        "1 lines were too long to be read whole.",
        "1,001 lines could not be read; meta['skipped_lines'] has the first ones.",
    ]


def test_operator_with_a_damaged_argument(tmp_path):
    lines = logs.listing()
    at = next(at for at, line in enumerate(lines) if "model.fc-matmul-0(" in line)
    trace = logs.read(tmp_path, "\n".join([*lines[:at], lines[at].replace("sbp=", "s\x00p=", 1), *lines[at + 1 :]]))
    damaged = [name for name, one in zip(trace.nodes["name"], attributes(trace.nodes), strict=True) if "damaged" in one]
    assert damaged == ["model.fc-matmul-0"]
    assert [one["line"] for one in trace.meta["skipped_lines"]] == [at + 1]


def test_message_that_glog_cut(tmp_path):
    records = logs.traced()
    long = logs.op("big-7", [*logs.user("big", {"in": ["ones_like-2/out_0"] * 600}, {"out": ["big-7/out_0"]})])
    text = "\n".join(long[:-2])[:29_940] if len("\n".join(long[:-2])) > 29_940 else "\n".join(long[:-9])
    trace = logs.read(tmp_path, logs.text(records) + text + "\n" + "\n".join(long[-2:]) + "\n")
    assert trace.nodes["name"].tolist() == [*(record[-1] for record in records), "big-7"]
    assert attributes(trace.nodes)[-1]["damaged"] is True
    assert trace.meta["skipped_lines"][0]["reason"] == "its text is cut"


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_list_of_ops_that_glog_cut_is_said(tmp_path, is_cut):
    listed = [logs.glog("WhiteSet include: model.fc-matmul-0,"), "model.fc-add_n-3" + "," * is_cut]
    trace = logs.read(tmp_path, logs.text([*logs.traced(), listed]))
    assert any("glog cut the list of a set of ops" in note for note in trace.meta["notes"]) is is_cut


def test_op_that_failed(tmp_path):
    failed = logs.op("model.fc-matmul-9", logs.user("matmul", {"a": ["x/out"]}, {"out": ["model.fc-matmul-9/out_0"]}))[
        :-2
    ]
    error = ["[ERROR](GRAPH:Net_0:Net) building graph got error."]
    raised = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    x", "RuntimeError: shapes"]
    trace = logs.read(tmp_path, logs.text([*logs.traced(), failed, error, raised]))
    assert trace.meta["oneflow"]["graphs"][0]["not_added"] == ["model.fc-matmul-9"]
    assert attributes(trace.nodes)[-1]["added"] is False
    texts = [one["text"] for one in trace.meta["oneflow"]["errors"]]
    assert texts == ["(GRAPH:Net_0:Net) building graph got error.", "RuntimeError: shapes"]


def test_hostile_names_are_text(tmp_path):
    name = "</script><img onerror=1>-__import__('os')-4"
    trace = logs.read(
        tmp_path, logs.text([logs.op(name, logs.user("x", {}, {"out": [f"{name}/out_0"]}))]).replace(" on", "\u00a0on")
    )
    assert len(trace.nodes) == 1
    assert trace.nodes["name"].iloc[0].startswith("</script>")
