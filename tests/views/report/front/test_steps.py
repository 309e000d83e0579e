"""Traces of one step stand together, those of other models apart."""

from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.front.steps import RecordedStep, recorded_steps, titles
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


def runs(*traces: Trace) -> list[RecordedStep]:
    return recorded_steps(chapters([Contents(trace) for trace in traces]))


def of_modules(count: int, name: str = "step", model: str = "Net", **meta: str) -> Trace:
    return make_trace(make_ops(*({"model": model, "module": f"m{n}"} for n in range(count))), name=name, **meta)


def test_recordings_of_one_step_are_one_run_although_one_saw_a_module_more() -> None:
    (run,) = runs(of_modules(35), of_modules(36))
    assert [chapter.anchor for chapter in run.chapters] == ["t1", "t2"]
    assert titles([run]) == ["step, Net"]


def test_a_larger_model_of_the_same_name_stands_apart_and_is_named_so() -> None:
    found = runs(of_modules(36), of_modules(63), of_modules(36))
    assert [[chapter.anchor for chapter in run.chapters] for run in found] == [["t1", "t3"], ["t2"]]
    assert titles(found) == ["step, Net (36 modules)", "step, Net (63 modules)"]


def test_other_names_and_other_models_stand_apart() -> None:
    found = runs(of_modules(2), of_modules(2, name="other"), of_modules(2, model="Big"))
    assert titles(found) == ["step, Net", "other, Net", "step, Big"]


def test_traces_without_modules_and_names_are_one_run() -> None:
    found = runs(make_trace(make_ops({"op": "a"}), name=""), make_trace(make_ops({"op": "b"}), name=""))
    assert [len(run.chapters) for run in found] == [2]
    assert titles(found) == ["Recording"]


def test_a_trace_without_rows_is_in_none() -> None:
    assert runs(make_trace(OPS.frame())) == []


def test_the_times_shown_are_those_of_optime() -> None:
    (run,) = runs(small_trace(name="s"), timed_trace(name="s"))
    assert run.timed is not None and run.timed.anchor == "t2"
    (run,) = runs(small_trace(), small_trace())
    assert run.timed is not None and run.timed.anchor == "t1"
