"""Tests the sentence on what a process asked of the others."""

import pytest

from nbkit.schema import COLLECTIVES
from nbkit.views.brief.brief import brief_of
from nbkit.views.statements.statement import Link, words_text
from nbkit.views.statements.time import waiting_statements
from tests.support.fakes import make_ops, make_trace

CALL = {"rank": 0, "op": "all_reduce", "is_p2p": False, "group": "default_pg (2 ranks)", "group_ranks": "[0, 1]"}
CALL |= {"op_id": 0, "start_us": 1.0, "size_bytes": 1024, "wait_us": 2000.0}
UNKNOWN = {"size_bytes": None, "wait_us": None}


def trace_of(*rows):
    ops = make_ops({"op": "c10d.allreduce_.default"}, {"op": "aten.mm.default"})
    trace = make_trace(ops, verb="optrace", wall_us=220_000.0)
    trace.frames["collectives"] = COLLECTIVES.frame([{**CALL, **row} for row in rows])
    return trace


def words_of(*rows):
    (statement,) = waiting_statements(trace_of(*rows))
    return statement.sentences[0]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{}], "1 collective of 1 group moved 1.00 KiB; the step waited 2.00 ms of 220 ms for them."),
        (
            [{}, {"op": "barrier", "size_bytes": None, "wait_us": 9000.0, "group_ranks": "[0]", "module": "layers.1"}],
            "2 collectives of 2 groups moved 1.00 KiB; the step waited 11.0 ms of 220 ms for them, 9.00 ms of it for "
            "barrier in layers.1.",
        ),
        (
            [{}, UNKNOWN],
            "2 collectives of 1 group moved at least 1.00 KiB; the step waited at least 2.00 ms of 220 ms for them.",
        ),
        ([UNKNOWN], "1 collective of 1 group ran; how long the step waited for them is not known."),
        (
            [{"op": "send", "is_p2p": True}, {"op": "recv", "is_p2p": True, "module": ""}, {"wait_us": 1.0}],
            "1 collective and 2 point-to-point transfers of 1 group moved 3.00 KiB; the step waited 4.00 ms of 220 ms "
            "for them, 2.00 ms of it for send.",
        ),
        (
            [{"group": None, "group_ranks": None}],
            "1 collective moved 1.00 KiB; the step waited 2.00 ms of 220 ms for them.",
        ),
    ],
)
def test_it_says_how_many_how_much_and_how_long(rows, text):
    assert words_text(words_of(*rows)) == text


def test_the_longest_wait_leads_to_its_op():
    (link,) = [part for part in words_of({"op_id": 1, "wait_us": 5000.0}, {}) if isinstance(part, Link)]
    assert (link.text, link.widget, link.value) == ("all_reduce", "op_table", 1)


def test_a_brief_says_it_and_nothing_where_there_is_none():
    assert "1 collective of 1 group moved" in str(brief_of(trace_of({})))
    assert waiting_statements(trace_of()) is None
    assert waiting_statements(trace_of({}, {"rank": 1})) is None
    audited = trace_of({})
    audited.meta["verb"] = "opaudit"
    assert waiting_statements(audited) is None
