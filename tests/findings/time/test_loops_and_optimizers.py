"""Modules that a loop calls, and optimizers that update one parameter at a time."""

import json
from typing import Any

import pytest

from nbkit.findings.time.cases import Case, Measured, OptimizerCase, Place
from tests.findings.time.steps import found

ROOT = {"level": "module", "op": "Net", "model": "Net", "module": "", "total_time_us": 9_000.0}


def cells(calls: int, **more: Any) -> list[dict[str, Any]]:
    """A root module that calls a cell so often."""
    cell = {"level": "module", "op": "Cell", "model": "Net", "module": "cell", "total_time_us": 50.0, "parent_id": 1}
    return [ROOT, *[{**cell, **more}] * calls]


def optimizer(ops: int, name: str = "torch.optim.AdamW.step", op: str = "aten.add_.Tensor") -> list[dict[str, Any]]:
    """A step of an optimizer that runs so many ops."""
    call = {"level": "api", "op": name, "phase": "optimizer", "total_time_us": 2_000.0}
    return [call, *[{"op": op, "phase": "optimizer", "parent_id": 1}] * ops]


def test_a_cell_that_a_loop_calls_is_told() -> None:
    assert found(*cells(100)) == [
        ("python_loop", "module cell is called 100 times in one forward pass, and takes 50 % of the step (5.00 ms)")
    ]


def test_a_stack_of_layers_and_long_calls_are_no_loop() -> None:
    assert found(*cells(63)) == []
    assert found(*cells(100, total_time_us=5_000.0), whole_us=500_000.0) == []
    assert found(*cells(100, total_time_us=2.0)) == []


def test_a_model_that_is_called_once_per_token_is_no_loop() -> None:
    assert found(*[{**ROOT, "total_time_us": 50.0}] * 100) == []


def test_an_optimizer_of_many_small_ops_is_told() -> None:
    assert found(*optimizer(300)) == [
        ("optimizer", "AdamW updates one parameter at a time: 300 ops in 1 step, 20 % of the step (2.00 ms)")
    ]


def test_of_a_run_that_others_slowed_the_share_is_told_alone() -> None:
    assert found(*optimizer(300), is_slowed=True) == [
        ("optimizer", "AdamW updates one parameter at a time: 300 ops in 1 step, 20 % of the step")
    ]


def test_fused_and_small_optimizers_and_those_of_others_are_right() -> None:
    assert found(*optimizer(300, op="aten._foreach_add_.List")) == []
    assert found(*optimizer(199)) == []
    assert found(*optimizer(300, name="torch.optim.LBFGS.step")) == []
    assert found(*optimizer(300), whole_us=50_000.0) == []


def test_an_optimizer_of_much_of_the_step_is_told_unless_it_is_fused() -> None:
    for op, does in (
        ("aten.add_.Tensor", "updates one parameter at a time"),
        ("aten._foreach_add_.List", "goes over its parameters in several passes"),
    ):
        assert found(*optimizer(50, op=op), whole_us=5_000.0) == [
            ("optimizer", f"AdamW {does}: 50 ops in 1 step, 40 % of the step (2.00 ms)")
        ]
    assert found(*optimizer(50, op="aten._fused_adamw_.default"), whole_us=5_000.0) == []
    assert found(*optimizer(50, name="torch.optim.RMSprop.step"), whole_us=5_000.0) == []
    assert found(*optimizer(50), whole_us=8_000.0) == []


def updates(kind: str, op: str, *arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a step that updates parameters (4, 2) and (7,) again and again, with these arguments in turn."""
    call, *rows = optimizer(300, f"torch.optim.{kind}.step", op)
    shapes = [json.dumps([shape, shape]) for shape in ([4, 2], [7])]
    known = {"input_dtypes": '["float32", "float32"]', "device": "cpu"}
    given = [json.dumps(some) for some in arguments or ({},)]
    return [
        call,
        *(
            {**row, **known, "input_shapes": shapes[at % 2], "arguments": given[at // 2 % len(given)]}
            for at, row in enumerate(rows)
        ),
    ]


@pytest.mark.parametrize(
    ("rows", "parameters"),
    [
        (updates("AdamW", "aten.addcdiv_.default"), 300),
        (updates("SGD", "aten.add_.Tensor", {"alpha": -0.1}), 300),
        (updates("SGD", "aten.add_.Tensor", {"alpha": 0.9}, {"alpha": -0.1}), 150),  # the momentum, then the parameter
    ],
)
def test_the_shapes_of_parameters_are_those_of_updates(rows: list[dict[str, Any]], parameters: int) -> None:
    seen: list[Case] = []

    def measure(case: Case) -> Measured:
        seen.append(case)
        return Measured("fused=True", 0.25)

    ((_, message),) = found(*rows, measure=measure)
    assert message.endswith("2.00 ms); fused=True, run on the same shapes, saves at least 15 % of the step (1.50 ms)")
    (case,) = seen
    assert isinstance(case, OptimizerCase)
    assert case.shapes == ((4, 2), (7,)) * (parameters // 2)
    assert case.place == Place("float32", "cpu", True)
    assert found(*rows, measure=lambda case: Measured("foreach=True", 0.9)) == []


def test_an_optimizer_whose_updates_are_not_known_is_not_run() -> None:
    def measure(case: Case) -> Measured:
        raise AssertionError(case)

    for rows in (
        updates("SGD", "aten.add_.Tensor", {"alpha": 0.9}),
        updates("RMSprop", "aten.addcdiv_.default"),
        optimizer(300),
    ):
        ((_, message),) = found(*rows, measure=measure)
        assert message.endswith("20 % of the step (2.00 ms)")


def test_of_two_steps_one_is_run() -> None:
    seen: list[OptimizerCase] = []
    rows = updates("AdamW", "aten.addcdiv_.default")
    second = [{**row, "parent_id": 302} if "parent_id" in row else row for row in rows]
    found(*rows, *second, measure=lambda case: seen.append(case))  # type: ignore[arg-type, func-returns-value]
    assert [len(case.shapes) for case in seen] == [300]
