"""The op table of a report answers what that of the notebook does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.op_table.report_data import all_modules, op_data
from nbkit.views.op_table.source import OpSource
from nbkit.views.panels.rounded import rounded
from nbkit.views.tables.source import PAGE_MODULES
from tests.support.fakes import fake_trace, make_ops, make_trace, repeated_trace, small_trace, timed_trace
from tests.views.report.both_sides import as_sent, in_the_page
from tests.views.report.questions import comparable, questions, rows, times
from tests.views.report.traces import hostile_trace, whole_times, without_levels


def recorded(verb: Callable[[], nbkit.Trace] = nbkit.optrace) -> Trace:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    with verb() as trace:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).square().mean().backward()
            optimizer.step()
    return trace


TRACES: dict[str, Callable[[], Trace]] = {
    "small": small_trace,
    "timed": timed_trace,
    "repeated": repeated_trace,
    "many": lambda: fake_trace(3000),
    "hostile": hostile_trace,
    "whole times": whole_times,
    "nothing known": without_levels,
    "empty": lambda: make_trace(make_ops()),
    "ops alone": lambda: Trace({"ops": make_ops({"module": "a"})}, {"complete": True}),
    "optrace": recorded,
    "statistics": lambda: recorded(lambda: nbkit.optrace(values="stats")),
    "optime": lambda: recorded(nbkit.optime),
    "opcheck": lambda: recorded(nbkit.opcheck),
    "opcost": lambda: recorded(nbkit.opcost),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("name", TRACES)
def test_every_answer_is_that_of_the_notebook(name: str, tmp_path: Path) -> None:
    trace = TRACES[name]()
    source = OpSource(rounded(trace))
    asked = [*questions(source), *(times(source) if "self_fraction" in source.columns.numbers else ())]
    answers = in_the_page("op", op_data(trace), asked, tmp_path)
    for question, answer in zip(asked, answers, strict=True):
        assert comparable(answer) == comparable(as_sent(source.answer(question))), question


def test_a_limit_holds_in_every_query(tmp_path: Path) -> None:
    source = OpSource(rounded(small_trace()))
    source.limit_to(np.array([0, 1, 7]))
    asked = [
        rows([{"column": "level", "op": "equals", "value": "aten"}]),
        {"kind": "position", "id": "p", "op_id": 7, "query": {}},
    ]
    answers = in_the_page("op", op_data(small_trace()), asked, tmp_path, within=[0, 1, 7])
    assert [comparable(answer) for answer in answers] == [comparable(as_sent(source.answer(each))) for each in asked]
    assert [answers[0]["matched"], answers[1]["position"]] == [2, 2]


def test_statistics_that_are_left_out_are_said_to_be(tmp_path: Path) -> None:
    trace = fake_trace(40_000)
    is_late = (trace.tensors["op_id"] == 39_998).to_numpy()
    trace.tensors["nan_count"] = trace.tensors["nan_count"].mask(is_late, 5)
    asked = [{"kind": "detail", "op_id": op_id} for op_id in (1, 39_998, 39_995)]
    answers = in_the_page("op", op_data(trace), asked, tmp_path)
    assert [answer["tensors"]["columns"][-1] == "inf_count" for answer in answers] == [True, True, False]
    said = "this report has those of 30,000 of 79,998 tensors, the notebook has all"
    assert [answer["left_out"] for answer in answers] == [None, None, said]


def test_the_same_trace_gives_the_same_bytes() -> None:
    assert op_data(hostile_trace()) == op_data(hostile_trace())


def test_a_hundred_thousand_ops_take_little_room() -> None:
    assert len(op_data(fake_trace(100_000))) < 1_400_000


def test_a_module_tree_of_several_pages_is_whole() -> None:
    names = [f"m{number}" for number in range(PAGE_MODULES + 1)]
    tree = all_modules(OpSource(make_trace(make_ops(*({"module": name} for name in names)))))
    assert [row[1] for row in tree["rows"] if row[1]] == names
    assert len(tree["rows"]) == tree["total"]
