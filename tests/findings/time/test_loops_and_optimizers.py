"""Modules that a loop calls, and optimizers that update one parameter at a time."""

from typing import Any

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


def test_fused_and_small_optimizers_and_those_of_others_are_right() -> None:
    assert found(*optimizer(300, op="aten._foreach_add_.List")) == []
    assert found(*optimizer(199)) == []
    assert found(*optimizer(300, name="torch.optim.LBFGS.step")) == []
    assert found(*optimizer(300), whole_us=50_000.0) == []
