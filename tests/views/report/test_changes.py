"""What a report says of a trace beside an earlier one."""

from nbkit.views.report.summary import changes, summary_statements
from tests.analysis.repeated import nested
from tests.support.fakes import small_trace, timed_trace
from tests.views.report.told import told


def test_the_module_that_became_slower_is_named() -> None:
    found = changes(nested(2, slow="blocks.3", by=9.0), nested(1))
    whole, most = told(found)
    assert " in all, " in whole and whole.endswith(" in optime.")
    assert most.startswith("Most by itself: blocks.3 (forward) +")


def test_equal_steps_and_single_runs_are_told_apart() -> None:
    assert told(changes(nested(1), nested(1)))[1] == "No module changed beyond noise."
    single = changes(timed_trace(), timed_trace(name="before"))
    assert told(single) == [
        "125 µs in all, 125 µs in optime before.", "Whether that is more than noise is not known."
    ]  # fmt: skip


def test_it_stands_in_the_summary_of_a_trace_with_a_base() -> None:
    assert [one.question for one in summary_statements(timed_trace(), small_trace())][:2] == [
        "What ran",
        "What changed",
    ]
    assert "What changed" not in [one.question for one in summary_statements(timed_trace())]
