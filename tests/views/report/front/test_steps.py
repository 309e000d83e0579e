"""Traces of one step stand together, those of other models and steps apart."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import nbkit
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.front.steps import RecordedStep, recorded_steps, titles
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace


def runs(*traces: Trace) -> list[RecordedStep]:
    return recorded_steps(chapters([Contents(trace) for trace in traces]))


def anchors(steps: list[RecordedStep]) -> list[list[str]]:
    return [[chapter.anchor for chapter in step.chapters] for step in steps]


def of_modules(count: int, name: str = "step", model: str = "Net", **meta: str) -> Trace:
    return make_trace(make_ops(*({"model": model, "module": f"m{n}"} for n in range(count))), name=name, **meta)


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, 3))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def squared(out: Tensor) -> Tensor:
    return out.square().mean()


def entropy(out: Tensor) -> Tensor:
    return cross_entropy(out, torch.zeros(len(out), dtype=torch.int64))


def training(model: Net, loss: Callable[[Tensor], Tensor] = squared) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        loss(model(torch.ones(2, 4))).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def recorded(step: Callable[[], object], verb: str = "optrace", **options: object) -> Trace:
    with getattr(nbkit, verb)(**options) as trace:
        step()
    assert isinstance(trace, Trace)
    return trace


VERBS = {
    "opcheck": {}, "opdiff": {}, "opaudit": {}, "opcost": {}, "optrace": {"values": "stats"},
    "opfallback": {"ops": "aten.mm*"}, "opcast": {"dtype": "bfloat16", "ops": "aten.mm*"},
}  # fmt: skip


@pytest.mark.parametrize("loss", [squared, entropy])
def test_what_the_verbs_record_of_one_step_is_one_chapter_without_a_name(loss: Callable[[Tensor], Tensor]) -> None:
    step = training(Net(), loss)
    timed = nbkit.optime(warmup=1, repeats=3).run(step)
    found = runs(timed, *(recorded(step, verb, **options) for verb, options in VERBS.items()))
    assert [len(one.chapters) for one in found] == [1 + len(VERBS)]
    assert titles(found) == ["Net: training step"]


def test_a_step_without_modules_is_one_too_by_its_lines() -> None:
    def step() -> None:
        weight = torch.ones(3, 3, requires_grad=True)
        (weight @ weight).sum().backward()

    found = runs(nbkit.optime(warmup=1, repeats=3).run(step), recorded(step), recorded(step, "opcheck"))
    assert anchors(found) == [["t1", "t2", "t3"]] and titles(found) == ["Forward and backward"]


OPTIMIZERS = {
    **{name: {} for name in ("Adadelta", "Adagrad", "AdamW", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD")},
    "SGD": {"momentum": 0.9}, "Adam": {"foreach": True}, "Adamax": {"foreach": True},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_first_step_in_which_the_optimizer_makes_its_state_is_the_same_step(name: str) -> None:
    model = Net()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3, **OPTIMIZERS[name])

    def step() -> None:
        optimizer.zero_grad()
        squared(model(torch.ones(2, 4))).backward()
        optimizer.step()

    found = runs(nbkit.opdoctor().run(step), nbkit.optime(repeats=2).run(step), recorded(step, "opdiff"))
    assert [len(one.chapters) for one in found] == [3]


def dropping() -> Callable[[], object]:
    def block() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 8), nn.Dropout(0.1))

    model = nn.Sequential(block(), block(), nn.Linear(8, 2)).eval()
    return torch.no_grad()(lambda: model(torch.ones(2, 8)).argmax(-1))


def compiling() -> Callable[[], object]:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    compiled, optimizer = torch.compile(model, backend="eager"), torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        squared(compiled(torch.ones(2, 4))).backward()
        optimizer.step()

    step()
    return step


def inferring() -> Callable[[], object]:
    parts = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2)
    model = nn.Sequential(*parts).eval()
    return torch.inference_mode()(lambda: model(torch.ones(2, 3, 8, 8)).argmax(-1).float().mean().item())


@pytest.mark.parametrize("make", [dropping, compiling, inferring])
def test_what_verbs_see_in_different_ways_is_one_step(make: Callable[[], Callable[[], object]]) -> None:
    step = make()
    timed = nbkit.optime(repeats=2).run(step)
    found = runs(timed, recorded(step, "opcheck"), recorded(step, values="stats"), recorded(step, "opcost"))
    assert [len(one.chapters) for one in found] == [4]


def other_steps(model: Net) -> dict[str, Callable[[], object]]:
    return {
        "evaluation": lambda: model(torch.ones(2, 4)),
        "another loss": training(model, entropy),
        "another width": training(Net(width=16)),
        "without an optimizer": lambda: squared(model(torch.ones(2, 4))).backward(),
    }


@pytest.mark.parametrize("which", ["evaluation", "another loss", "another width", "without an optimizer"])
def test_another_step_or_model_stands_apart_although_it_is_called_the_same(which: str) -> None:
    model = Net()
    step, other = training(model), other_steps(model)[which]
    found = runs(recorded(step), nbkit.optime(warmup=1, repeats=2).run(other), recorded(step, "opcheck"))
    assert anchors(found) == [["t1", "t3"], ["t2"]]


def test_a_given_name_wins_and_takes_those_without_one_if_it_is_the_only_one() -> None:
    step = training(Net())
    plain, first, second = recorded(step), recorded(step, name="first"), recorded(step, name="second")
    assert anchors(runs(plain, first, recorded(step, "opcheck"))) == [["t1", "t2", "t3"]]
    found = runs(plain, first, second, first)
    assert anchors(found) == [["t1"], ["t2", "t4"], ["t3"]]
    assert titles(found) == ["Net: training step", "first, Net", "second, Net"]


def test_one_that_ended_early_is_of_the_step_whose_beginning_it_is() -> None:
    step = training(Net())
    early = recorded(step)
    early.frames["ops"] = OPS.check(early.ops.query("phase == 'forward'").reset_index(drop=True))
    assert anchors(runs(recorded(step), early)) == [["t1"], ["t2"]]
    early.meta["complete"] = False
    assert anchors(runs(recorded(step), early)) == [["t1", "t2"]]


@pytest.mark.parametrize("meta", [{"machine": "another"}, {"devices": ["cuda:0"]}])
def test_another_machine_or_device_is_another_recording(meta: dict[str, object]) -> None:
    here = {"machine": "this", "devices": ["cpu"]}
    assert anchors(runs(small_trace(**here), small_trace(**here), small_trace(**here | meta))) == [["t1", "t2"], ["t3"]]


def test_recordings_of_one_step_are_one_run_although_one_saw_a_module_more() -> None:
    (run,) = runs(of_modules(35), of_modules(36))
    assert [chapter.anchor for chapter in run.chapters] == ["t1", "t2"]
    assert titles([run]) == ["step, Net"]


def test_a_larger_model_of_the_same_name_stands_apart_and_is_named_so() -> None:
    found = runs(of_modules(36), of_modules(63), of_modules(36))
    assert anchors(found) == [["t1", "t3"], ["t2"]]
    assert titles(found) == ["step, Net (36 modules)", "step, Net (63 modules)"]


def test_other_names_and_other_models_stand_apart() -> None:
    found = runs(of_modules(2), of_modules(2, name="other"), of_modules(2, model="Big"))
    assert titles(found) == ["step, Net", "other, Net", "step, Big"]


def test_what_no_module_and_no_line_tells_apart_is_not_put_together() -> None:
    found = runs(make_trace(make_ops({"op": "a"}), name=""), make_trace(make_ops({"op": "a"}), name=""))
    assert titles(found) == ["Forward", "Forward"]


def test_a_trace_without_rows_is_in_none() -> None:
    assert runs(make_trace(OPS.frame())) == []


def test_the_times_shown_are_those_of_optime() -> None:
    (run,) = runs(small_trace(name="s"), timed_trace(name="s"))
    assert [chapter.anchor for chapter in run.timed] == ["t2"]
    (run,) = runs(small_trace(), small_trace())
    assert [chapter.anchor for chapter in run.timed] == ["t1"]


def test_a_step_whose_backward_ops_have_no_module_in_one_is_one():
    """As those of a compiled step have none under optime, whose forward pass is one node for all verbs."""
    forward = {"model": "Net", "module": "", "op": "aten.mm.default"}
    backward = [{**forward, "phase": "backward", "module": name} for name in "abcd"]
    traces = [make_trace(make_ops(forward, *each)) for each in (backward, [{**row, "module": ""} for row in backward])]
    assert len(runs(*traces)) == 1
