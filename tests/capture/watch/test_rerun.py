"""Running steps again says which one it is, and which could not be."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nbkit.capture.watch import keeper
from nbkit.capture.watch.keeper import TOO_LARGE, Keeper
from nbkit.capture.watch.rerun import CannotRunAgainError, Rerun
from nbkit.capture.watch.rows import StepRows


@pytest.fixture(autouse=True)
def no_other_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other tests in this process are no part of the steps."""
    monkeypatch.setattr(keeper, "holders", list)


@dataclass
class Step:
    """Adds to the gradient of a weight; recorded behind another step it fails."""

    number: int
    names: dict[str, Any]
    is_recorded_alone: bool = False
    module: dict[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        return self.names

    def objects(self) -> list[Any]:
        return []

    def mentioned(self) -> dict[str, Any]:
        return self.names

    def run(self) -> None:
        weight: Tensor = self.names["weight"]
        if self.is_recorded_alone and weight.grad is not None and torch._C._len_torch_function_stack():
            raise RuntimeError("the gradient is elsewhere")
        (weight * 2).sum().backward()
        torch.ones(2, device="meta")  # a device that is not the CPU


def kept(count: int, most_bytes: int = 1 << 20, **options: Any) -> Keeper:
    among, names = Keeper(most_bytes), {"weight": nn.Parameter(torch.ones(8))}
    for number in range(count):
        among.begin(Step(number, names, **options))
    return among


def row(number: int, **columns: Any) -> dict[str, Any]:
    return {"step": number, "wall_us": 1e3, "anomaly": None, "error": None, "loss": 16.0, **columns}


def test_who_waits_is_told_which_step_runs_again_and_why_one_could_not():
    def fail() -> None:
        raise CannotRunAgainError("its file is gone")

    said, ran = list[str](), list[int]()
    rerun = Rerun(Keeper(1 << 20), StepRows(), "audit", said.append)
    assert rerun._attempt(3, lambda: ran.append(3)) and not rerun._attempt(17, fail)
    assert said == [f"running step {number} again to look at it" for number in (3, 17)]
    assert (ran, rerun.limits) == ([3], ["Step 17 could not be run again: its file is gone."])


def test_state_that_has_grown_too_large_is_said_and_nothing_runs() -> None:
    among = kept(1, most_bytes=64)
    assert among.first is not None
    among.first.calls[0].step.names["weight"] = nn.Parameter(torch.ones(64))
    rerun = Rerun(among, StepRows([row(0)]), "audit", lambda text: None)
    rerun.run()
    assert (rerun.limits, rerun.recordings) == ([TOO_LARGE], [])


def test_where_no_other_step_is_kept_there_is_no_usual_one() -> None:
    assert Rerun(kept(1), StepRows([row(0)]), "audit", lambda text: None)._usual(0) == (0, [])


def test_steps_that_cannot_be_recorded_together_are_recorded_each_alone() -> None:
    rerun = Rerun(kept(2, is_recorded_alone=True), StepRows([row(0), row(1)]), "audit", lambda text: None)
    rerun.run()
    assert rerun.limits == []
    assert [(one.steps.name, one.verb, [*one.steps.steps]) for one in rerun.recordings] == [
        ("step=0", "opaudit", [0]),
        ("step=1", "opaudit", [1]),
        ("time", "optime", [0, 1, 1]),
        ("diff-step=0", "opdiff", [0]),
        ("diff-step=1", "opdiff", [1]),
    ]
    timed = rerun.recordings[2].trace
    product = timed.ops["op"].tolist().index("aten.mul.Tensor")
    assert timed.samples.loc[timed.samples["op_id"] == product, "repeat"].tolist() == [0, 1, 2]
