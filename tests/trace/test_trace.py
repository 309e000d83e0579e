"""Tests a trace: frames as attributes, errors that name what is there, its text."""

import pytest

from nbkit import SchemaError, Trace
from nbkit.schema import MODULES, OPS, TENSORS
from tests.support.fakes import small_trace


def test_frames_are_attributes():
    trace = small_trace()
    assert trace.ops is trace.frames["ops"]
    assert {"ops", "tensors", "modules", "save", "load"} <= set(dir(trace))


def test_a_mistyped_frame_lists_the_nearest():
    with pytest.raises(AttributeError, match=r"A trace has no 'tensor'; did you mean 'tensors'\?"):
        small_trace().tensor  # noqa: B018


def test_an_unknown_attribute_lists_what_there_is():
    with pytest.raises(AttributeError, match="A trace has no 'xyzzy'; known are modules, ops, tensors"):
        small_trace().xyzzy  # noqa: B018


def test_before_the_recording_has_ended_the_frames_are_announced():
    trace = Trace()
    with pytest.raises(AttributeError, match="no frames yet: 'ops' is there once its recording has ended"):
        trace.ops  # noqa: B018
    assert "still recording" in repr(trace)
    assert trace._repr_mimebundle_() == ({"text/plain": repr(trace)}, {})
    assert not trace.complete


def test_frames_are_checked():
    with pytest.raises(SchemaError, match="ops needs the columns"):
        Trace({"ops": OPS.frame().drop(columns="op")})


@pytest.mark.parametrize("given", ["folder", OPS.frame(), None])
def test_what_is_no_mapping_of_frames_is_refused(given):
    with pytest.raises(SchemaError, match=r"A trace is made of frames by name, and this is a .*; give .* nbkit\.load"):
        Trace(given)


def test_an_unknown_frame_is_refused():
    with pytest.raises(SchemaError, match="'opps'"):
        Trace({"opps": OPS.frame()})


def test_its_text_says_what_it_holds_and_whether_it_is_whole():
    assert repr(small_trace(name="mine")).startswith("<Trace 'mine': 8 ops, ")
    assert repr(small_trace(complete=False)).endswith(", incomplete>")
    assert not repr(small_trace()).endswith(", incomplete>")


def test_two_traces_share_nothing():
    first, second = Trace(), Trace()
    first.meta["name"] = "first"
    first.frames["ops"] = OPS.frame()
    assert (second.meta, second.frames) == ({}, {})


def test_an_empty_trace_has_a_summary_and_a_text_twin():
    trace = Trace({"ops": OPS.frame(), "tensors": TENSORS.frame(), "modules": MODULES.frame()}, {"complete": True})
    assert trace.summary()
    data, _ = trace._repr_mimebundle_()
    assert data["text/plain"]
