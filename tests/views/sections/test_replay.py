"""The tables of captured calls and of a replay, above those of ops."""

import torch

from nbkit.schema import DIFFS
from nbkit.verbs.operators.opcapture import capture_sections
from nbkit.verbs.operators.opreplay import replay_sections
from tests.capture.operators.folders import captured
from tests.support.fakes import make_ops, make_trace


def test_captured_calls_are_counted_with_their_size_and_place(tmp_path):
    x = torch.ones(4)
    trace = captured(tmp_path / "calls", lambda: (x.mul(3), x.mul(2), x.exp()), ops=["aten.mul", "aten.exp"])
    (section,) = capture_sections(trace, 5)
    assert [*section.rows] == [(3, 2, trace.meta["captured_bytes"], "calls")]
    assert "captured calls" in trace.summary()


def test_a_replay_that_ran_nothing_has_no_slowest_calls():
    counts = {"captured_calls": 2, "replayed_calls": 0, "identical_calls": 0}
    trace = make_trace(make_ops(), verb="opreplay", **counts)
    trace.frames["diffs"] = DIFFS.frame()
    sections = replay_sections(trace, 5)
    assert [section.title for section in sections][:1] == ["Replay"] and [*sections[0].rows] == [[2, 0, 0]]
    assert "Slowest calls" not in [section.title for section in sections]
    assert "slowest calls" not in trace.summary()
