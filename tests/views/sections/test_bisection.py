"""The tables of an opbisect trace: culprits first, then the trials."""

import torch

import nbkit
from nbkit.verbs.operators.opbisect import bisection_sections
from tests.support.fakes import small_trace


def bisected(check):
    ran = set()

    def by(calls):
        ran.clear()
        ran.update(call.call for call in calls)
        return torch.no_grad()

    return nbkit.opbisect(lambda: [torch.ones(2).exp() for _ in range(4)], lambda result: check(ran), by=by, ops="exp")


def test_culprits_stand_first_with_the_verdict_below():
    culprits, trials = bisection_sections(bisected(lambda ran: {1, 3} <= ran), 5)
    assert culprits.title == "Culprits: 2 calls"
    assert [row[:2] for row in culprits.texts()] == [["aten.exp.default", "1"], ["aten.exp.default", "3"]]
    assert culprits.caption == "With 2 calls replaced the step passes, without any one of them it fails."
    assert [row[1:4] for row in trials.texts()[:2]] == [["0", "fails", "nothing"], ["4", "passes", "all"]]


def test_a_trace_without_culprits_says_why_and_counts_further_trials():
    trace = bisected(lambda ran: False)
    culprits, trials = bisection_sections(trace, 1)
    assert (culprits.title, culprits.rows) == ("Culprits: none found", [])
    assert culprits.caption == "The step fails also with all calls replaced, 4 calls: the cause is not in these."
    assert trials.caption == "and 1 more"
    assert "the cause is not in these" in trace.summary()


def test_other_traces_have_none():
    assert bisection_sections(small_trace(), 5) == []
