"""What is known of a trace is computed once while one view is made, and anew for the next."""

import nbkit
from nbkit.trace.once import once_per_view, one_view


def test_each_trace_is_asked_once_inside_a_view():
    asked = []
    name_of = once_per_view(lambda trace: asked.append(trace) or trace.meta["name"])
    first, second = nbkit.Trace(meta={"name": "a"}), nbkit.Trace(meta={"name": "b"})
    with one_view():
        assert [name_of(trace) for trace in (first, second, first)] == ["a", "b", "a"]
        with one_view():  # a view in it is part of it
            assert name_of(second) == "b"
        assert name_of(first) == "a"
    assert asked == [first, second]


def test_the_next_view_sees_what_has_changed():
    name_of = once_per_view(lambda trace: trace.meta["name"])
    trace = nbkit.Trace(meta={"name": "a"})
    for name in ("b", "c"):
        trace.meta["name"] = name
        with one_view():
            assert name_of(trace) == name
    trace.meta["name"] = "d"
    assert name_of(trace) == "d"


def test_two_functions_are_told_apart():
    name_of, verb_of = (once_per_view(lambda trace, key=key: trace.meta[key]) for key in ("name", "verb"))
    trace = nbkit.Trace(meta={"name": "a", "verb": "optrace"})
    with one_view():
        assert (name_of(trace), verb_of(trace)) == ("a", "optrace")
