"""Index outputs: another index of an equal value is right, any other is wrong."""

import pytest
import torch
import torch.nn.functional as F

from tests.capture.diff.planted import with_fault, wrong

TIED = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])


def swapped(to):
    def change(func, args, out):
        indices = out if isinstance(out, torch.Tensor) else out[1]
        indices.copy_(torch.tensor(to))
        return out

    return change


CASES = {
    "argmax": (lambda: TIED.argmax(1), "aten.argmax.default", [2, 3], [0, 3]),
    "argmax of all": (lambda: TIED.argmax(), "aten.argmax.default", 2, 0),
    "max": (lambda: TIED.max(1), "aten.max.dim", [2, 3], [3, 3]),
    "sort": (lambda: TIED.sort(1), "aten.sort.default", [[3, 0, 2, 1], [3, 2, 1, 0]], [[3, 0, 2, 2], [3, 2, 1, 0]]),
    "topk": (lambda: TIED.topk(2), "aten.topk.default", [[2, 1], [3, 0]], [[2, 2], [3, 0]]),
    "max_pool": (
        lambda: F.max_pool2d(TIED[None, None], 2, return_indices=True),
        "aten.max_pool2d_with_indices.default",
        [[[[1, 6]]]],
        [[[[1, 6]]]],
    ),
}


@pytest.mark.parametrize("case", [name for name in CASES if name != "max_pool"])
def test_another_index_of_an_equal_value_is_right(case):
    step, op, tied, _ = CASES[case]
    trace = with_fault(step, op, swapped(tied))
    assert wrong(trace).empty
    assert (trace.diffs["message"] == "other indices of equal values").any()


@pytest.mark.parametrize("case", CASES)
def test_an_index_of_another_value_is_wrong(case):
    step, op, _, bad = CASES[case]
    assert wrong(with_fault(step, op, swapped(bad)))["status"].tolist() == ["mismatch"]
