"""Checks of executions that several tests make."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbkit.trace.executions.execution import Execution, Result


def one(execution: Execution, name: str) -> Result:
    """Returns the result of this name."""
    (found,) = [result for result in execution.results if result.name == name]
    return found


def value(execution: Execution, name: str) -> Any:
    return execution.value(one(execution, name).result_id)


def output(execution: Execution, name: str = "[0]") -> Tensor:
    found = execution.value(execution.outputs[name])
    assert found is not None
    return torch.from_numpy(np.array(found))


def runs_again(execution: Execution) -> None:
    """Checks that each result stands behind its sources, and that every op gives the same values once more."""
    assert [result.result_id for result in execution.results] == list(range(len(execution.results)))
    assert all(source < result.result_id for result in execution.results for source in result.sources)
    assert execution.recompute is not None
    kept = [r.result_id for r in execution.results if execution.value(r.result_id) is not None]
    answer = execution.recompute({}, kept)
    for number in kept:
        np.testing.assert_allclose(answer[number], execution.value(number), rtol=1e-5, atol=1e-6)


def runs_from_inputs(execution: Execution) -> None:
    """Checks that ops read what their sources say: all ops anew from the inputs give the same output."""
    given = {r.result_id: execution.value(r.result_id) for r in execution.results if r.kind != "op"}
    assert execution.recompute is not None
    wanted = list(execution.outputs.values())
    answer = execution.recompute({number: found for number, found in given.items() if found is not None}, wanted)
    for number in wanted:
        np.testing.assert_allclose(answer[number], execution.value(number), rtol=1e-5, atol=1e-6)
