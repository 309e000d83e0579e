"""The tables of an opdiff summary, from a frame of literal rows."""

from nbkit.schema import DIFFS
from nbkit.views.sections.diff import diff_sections, worst_first
from tests.support.fakes import make_ops, make_trace

BASE = {"role": "output", "position": 0, "phase": "forward", "dtype": "float32", "shape": "[2]"}


def diffs(*rows):
    named = [dict(zip(("op", "status", "noise_ratio"), row, strict=True)) for row in rows]
    return DIFFS.frame([{"op_id": number, **row, **BASE} for number, row in enumerate(named)])


ROWS = (
    ("a", "ok", 0.5),
    ("b", "skipped", None),
    ("c", "mismatch", 9.0),
    ("d", "ok", 2.0),
    ("e", "mismatch", float("inf")),
    ("f", "shape", None),
)


def test_the_worst_stand_first():
    assert worst_first(diffs(*ROWS))["op"].tolist() == ["e", "c", "f", "d", "a", "b"]


def test_verdicts_are_counted_and_texts_are_short():
    trace = make_trace(make_ops(*({"op": row[0]} for row in ROWS)), verb="opdiff")
    trace.frames["diffs"] = diffs(*ROWS)
    verdicts, worst = diff_sections(trace, 2)
    assert verdicts.texts() == [["mismatch", "2"], ["shape", "1"], ["ok", "2"], ["skipped", "1"]]
    assert worst.texts() == [["e", "mismatch", "inf", None, None], ["c", "mismatch", "9", None, None]]
    assert "worst differences" in trace.summary()
    assert "Worst differences" in trace._repr_mimebundle_()[0]["text/html"]


def test_below_the_threshold_a_ratio_is_a_bound():
    """opdiff looks no closer at what is within rounding: a correct Mistral had 7.28 to 7.99, and looked suspicious."""
    trace = make_trace(make_ops({"op": "a"}, {"op": "b"}, {"op": "c"}), verb="opdiff")
    trace.frames["diffs"] = diffs(("a", "ok", 7.362), ("b", "ok", 0.0), ("c", "reduced", 12.0))
    _, worst = diff_sections(trace, 3)
    assert [row[2] for row in worst.texts()] == ["12", "≤ 7.36", "0"]
    assert "≤ 7.36" in trace.summary()


def test_a_trace_without_diffs_has_no_such_table():
    assert diff_sections(make_trace(make_ops({})), 5) == []
