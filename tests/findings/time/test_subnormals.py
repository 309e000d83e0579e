"""An optimizer is told whose state holds subnormal numbers, where these slow down what takes most of its step."""

import pytest

from nbkit.findings.time.cases import Subnormal
from nbkit.findings.time.rules import time_findings
from tests.findings.time.steps import frames

ADAM = {"level": "api", "op": "torch.optim.Adam.step", "phase": "optimizer", "total_time_us": 5_000.0}
SQRT = {"op": "aten.sqrt.default", "phase": "optimizer", "parent_id": 1, "total_time_us": 2_000.0}
OTHER = {"op": "aten.mul_.Tensor", "phase": "optimizer", "parent_id": 1, "total_time_us": 500.0}


def told(*rows, look, whole_us=10_000.0):
    found = time_findings(frames(*rows, whole_us=whole_us), look=look)
    return found[found["rule"] == "subnormal_state"].to_dict("records")


def test_the_op_the_state_and_how_much_slower_are_told():
    asked = []

    def look(kind, op):
        asked.append((kind, op))
        return Subnormal("exp_avg_sq", 0.62, 1.1754944e-38, 51.3)

    [finding] = told(ADAM, OTHER, SQRT, SQRT, look=look)
    assert asked == [("Adam", "aten.sqrt")]
    assert finding["message"] == (
        "62% of the elements of Adam's exp_avg_sq are subnormal numbers, below 1.18e-38: run on them, aten.sqrt takes "
        "51 times as long as on others; its calls in the optimizer take 40 % of the step (4.00 ms)"
    )
    assert (finding["op"], finding["severity"], finding["count"]) == ("aten.sqrt.default", "hint", 2)
    assert finding["effect_us"] == pytest.approx(4_000 * (1 - 1 / 51.3))


@pytest.mark.parametrize("whole_us", [10_000.0, 1e6])
def test_of_a_usual_state_and_of_ops_that_take_little_nothing_is_told(whole_us):
    subnormal = None if whole_us < 1e6 else Subnormal("exp_avg_sq", 1.0, 1e-38, 50.0)
    assert told(ADAM, SQRT, SQRT, look=lambda kind, op: subnormal, whole_us=whole_us) == []


def test_a_step_of_an_optimizer_without_gradients_has_no_op_to_look_at():
    assert told(ADAM, look=lambda kind, op: Subnormal("exp_avg_sq", 1.0, 1e-38, 50.0)) == []
