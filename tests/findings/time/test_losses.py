"""Cross entropies that are made of single ops, of which only those are told that the fused one was measured to beat."""

import json
from typing import Any

import pytest

from nbkit.findings.time.cases import Case, LossCase, Measured, Place
from tests.findings.time.steps import found


def ops(*names: str, dim: int = -1, **more: Any) -> list[dict[str, Any]]:
    known = {"input_shapes": "[[6, 5, 90]]", "input_dtypes": '["float32"]', "arguments": json.dumps({"dim": dim})}
    return [{"op": f"aten.{name}.default", "total_time_us": 400.0, "device": "cpu", **known, **more} for name in names]


def halved(case: Case) -> Measured:
    return Measured("cross_entropy", 0.5)


SOFTMAX_LOG = ("softmax", "add", "log", "gather", "neg", "mean")
ONE_HOT = ("one_hot", "log_softmax", "mul", "sum", "neg", "mean")


def test_a_loss_by_hand_is_told_with_what_is_saved() -> None:
    message = (
        "1 cross entropy is made of single ops and takes 24 % of the step (2.40 ms); cross_entropy, run on the same "
        "shapes, saves at least 12 % of the step (1.20 ms)"
    )
    assert found(*ops(*SOFTMAX_LOG), measure=halved) == [("loss", message)]
    ((rule, message),) = found(*ops(*ONE_HOT), *ops(*ONE_HOT), measure=halved)
    assert rule == "loss"
    assert message.startswith("2 cross entropies are made of single ops and take 24 % of the step (2.40 ms); ")


@pytest.mark.parametrize(
    ("names", "dim", "case"),
    [
        (SOFTMAX_LOG, -1, LossCase(30, 90, True, False, Place("float32", "cpu", False))),
        (SOFTMAX_LOG, 1, LossCase(540, 5, True, False, Place("float32", "cpu", False))),
        (ONE_HOT, -1, LossCase(30, 90, False, True, Place("float32", "cpu", False))),
        (("log_softmax", "one_hot", "mul", "sum"), -1, LossCase(30, 90, False, True, Place("float32", "cpu", False))),
        (("log_softmax", "arange", "index", "mean"), 2, LossCase(30, 90, False, False, Place("float32", "cpu", False))),
    ],
)
def test_the_case_is_what_was_recorded(names: tuple[str, ...], dim: int, case: LossCase) -> None:
    seen: list[Case] = []

    def measure(case: Case) -> Measured:
        seen.append(case)
        return Measured("cross_entropy", 0.1)

    assert [rule for rule, _ in found(*ops(*names, dim=dim), measure=measure)] == ["loss"]
    assert seen == [case]


@pytest.mark.parametrize(
    "names",
    [
        ("softmax", "gather", "mean"),  # no log
        ("log_softmax", "mul", "sum"),  # soft targets
        ("log_softmax", "gather", "mul", "mean"),  # weighted: a policy
        ("softmax", "log", "relu", "gather", "mean"),
        ("log_softmax", "gather"),
        ("log_softmax", "mean"),
    ],
)
def test_other_work_is_no_cross_entropy(names: tuple[str, ...]) -> None:
    assert found(*ops(*names, total_time_us=900.0), measure=halved) == []


def test_what_was_not_measured_or_saves_little_is_no_finding() -> None:
    rows = ops(*SOFTMAX_LOG)
    assert found(*rows) == []
    assert found(*rows, measure=lambda case: None) == []
    assert found(*rows, measure=lambda case: Measured("cross_entropy", 0.9)) == []
    assert found(*rows, whole_us=1e6, measure=halved) == []
    assert found(*ops(*SOFTMAX_LOG, dim=7), measure=halved) == []
