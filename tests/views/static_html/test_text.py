"""The text of a trace."""

from nbkit.views.static_html.text import summary
from tests.support.fakes import make_ops, make_trace, small_trace


def test_summary_names_counts_cost_slowest_ops_modules_and_phases() -> None:
    lines = summary(small_trace(name="step")).splitlines()
    assert lines[0] == "6 ops in 2 modules, 64 parameters."
    assert lines[4] == (
        "optrace step: 8 ops, 6 aten ops, 2 API calls, wall time 160 µs, overhead about 64.0 µs (40.0 %), "
        "device cpu, torch 2.13.0"
    )
    lines = lines[6:]
    assert lines[0].split() == ["phase", "calls", "self", "time", "share"]
    assert lines[6].split() == ["aten.mm.default", "1", "62.0", "µs", "51.7", "%"]
    assert lines[12].split() == ["slowest", "modules", "calls", "self", "time", "share"]
    assert len(lines[5:11]) == 6


def test_a_trace_that_judges_nothing_says_in_one_sentence_what_would() -> None:
    lines = summary(small_trace()).splitlines()
    assert (
        lines[2] == "Next: nbkit.opcheck (NaN), nbkit.opdiff (kernels), nbkit.opaudit (gradients), nbkit.optime (time)."
    )


def test_incomplete_trace_says_so_with_the_error() -> None:
    error = {"type": "ValueError", "message": "two\nlines", "op_id": 7, "source": "Cell In[7], line 3"}
    text = summary(small_trace(complete=False, error=error))
    assert "INCOMPLETE: ValueError: two\\nlines (at op 7, Cell In[7], line 3)" in text
    assert "INCOMPLETE: the recorded code did not run to its end" in summary(small_trace(complete=False))


def test_skipped_and_filtered_ops_are_named_with_their_reason() -> None:
    text = summary(small_trace(skipped={"vmap": 2}, filtered_ops=1, filters={"ops": "mm"}))
    assert text.splitlines()[-2:] == ["skipped 2: vmap", "left out by filters: 1 op (ops=mm)"]


def test_trace_without_ops_or_meta() -> None:
    assert summary(make_trace(make_ops(), wall_us=None, recorder_us=None)).endswith("\nNo op was recorded.")


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in summary(make_trace(make_ops({"op": "\x1b[2J", "module": "\x1b", "model": "\x1b"})))
