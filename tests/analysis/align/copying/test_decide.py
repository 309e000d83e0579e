"""What is said of a parameter that is not copied, where the left one of its name has no values."""

import numpy as np

from nbkit.analysis.align.copying.decide import decide
from tests.analysis.align.makers import execution, numbers

X, W = numbers(0, 5, 4), numbers(1, 4, 4)


def products(*names: str):
    """x times a matrix for each name, all of the same values."""
    steps, last = [("x", None, [], X)], ("x", X)
    for at, name in enumerate(names):
        result = last[1] @ W
        steps += [(name, None, [], W), (f"y{at}", "MatMul", [last[0], name], result)]
        last = f"y{at}", result
    return execution(*steps, ops={"MatMul": np.matmul})


def test_a_tied_name_whose_tensor_has_no_values_is_nothing_in_its_place():
    """As of a quantized tensor, which numpy cannot hold."""
    left, right = products("first.weight", "head.weight"), products("first.weight", "head.weight")
    state = {"first.weight": W, "head.weight": W}
    assert {one.right for one in decide(left, right, state, state, {}).copied} == {*state}
    found = decide(left, right, {}, state, {"head.weight": "first.weight"})
    assert (found.copied, found.agrees) == ((), False)
    assert [(one.left, one.reason) for one in found.not_copied] == [
        (None, f"right {name} (4, 4) was left as it is: nothing on the left is in its place.") for name in state
    ]
