"""Value statistics agree with torch on every dtype and layout, and never disturb the step."""

import math
import warnings

import numpy as np
import pytest
import torch

from nbkit.capture.raw.recording import TimeSpans
from nbkit.capture.raw.statistics import NOTHING, tensor_values
from tests.capture.models import bits, record, tensor_rows

NAN, INF = math.nan, math.inf
COLUMNS = ("mean", "std", "min", "max", "norm", "nan_count", "inf_count")


def quantised(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.quantize_per_tensor(x, 0.5, 0, torch.qint8)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([1.0, 2.0, 4.0]), (7 / 3, (14 / 9) ** 0.5, 1, 4, 21**0.5, 0, 0)),
        (torch.tensor([1.0, NAN, 3.0, INF, -INF]), (2, 1, 1, 3, 10**0.5, 1, 2)),
        (torch.tensor([NAN, INF]), (None, None, None, None, None, 1, 1)),
        (torch.tensor(3.0), (3, 0, 3, 3, 3, 0, 0)),
        (torch.empty(0, 2), (None, None, None, None, None, 0, 0)),
        (torch.tensor([3, 4]), (3.5, 0.5, 3, 4, 5, 0, 0)),
        (torch.tensor([255, 1], dtype=torch.uint8), (128, 127, 1, 255, (255**2 + 1) ** 0.5, 0, 0)),
        (torch.tensor([True, False]), (0.5, 0.5, 0, 1, 1, 0, 0)),
        (torch.tensor([3 + 4j, complex(NAN, 1), complex(INF, 0)]), (None, None, None, None, 5, 1, 1)),
        (torch.tensor([60000.0, 60000.0], dtype=torch.float16), (60000, 0, 60000, 60000, 60000 * 2**0.5, 0, 0)),
        (torch.full((3,), 1e300, dtype=torch.float64) * 1e9, (None, None, None, None, None, 0, 3)),
        (torch.tensor([1.5, 2.5]).to(torch.float8_e4m3fn), (2, 0.5, 1.5, 2.5, 8.5**0.5, 0, 0)),
        (torch.tensor([NAN, 1.0]).to(torch.bfloat16), (1, 0, 1, 1, 1, 1, 0)),
        (torch.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse(), (3.5, 0.5, 3, 4, 5, 0, 0)),  # of the stored values
        (quantised(torch.tensor([0.0, 1.0])), (0.5, 0.5, 0, 1, 1, 0, 0)),
        (torch.ones(3, device="meta"), NOTHING),
        (torch.tensor([2.0, 4.0]).expand(3, 2).t(), (3, 1, 2, 4, 60**0.5, 0, 0)),
    ],
)
def test_statistics_of_a_tensor(tensor, expected, recwarn):
    """Defects B10, B40: empty and one-element tensors, without a warning."""
    values = tensor_values(tensor)
    assert [value is None for value in values] == [value is None for value in expected]
    assert [v for v in values if v is not None] == pytest.approx([v for v in expected if v is not None], rel=1e-6)
    assert [str(warning.message) for warning in recwarn if issubclass(warning.category, UserWarning)] == []


def test_statistics_of_random_tensors_agree_with_float64():
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        x = torch.randn(7, 11).to(dtype)
        wide = x.double()
        expected = (wide.mean(), wide.std(correction=0), wide.min(), wide.max(), wide.norm(), 0, 0)
        assert tensor_values(x) == pytest.approx(tuple(float(value) for value in expected), rel=1e-9, abs=1e-12)


def test_a_recorded_division_shows_where_infinity_comes_from():
    """x/0 gives Inf out of clean inputs, float32 overflow too, and so does the gradient."""
    x = torch.tensor([1.0, 3.4028e38], requires_grad=True)

    def step():
        (x / torch.zeros(2)).sum().backward()
        x.detach() + x.detach()

    trace = record(step, values="stats")
    division = tensor_rows(trace, "aten.div", "output").iloc[0]
    assert (division["inf_count"], division["nan_count"]) == (2, 0)
    assert tensor_rows(trace, "aten.div", "input")["inf_count"].iloc[:2].tolist() == [0, 0]
    assert tensor_rows(trace, "aten.div", "output")["inf_count"].iloc[1] == 2  # the gradient
    assert tensor_rows(trace, "aten.add", "output")["inf_count"].iloc[0] == 1


def test_inputs_are_read_before_an_op_writes_to_them():
    x = torch.zeros(3)
    trace = record(lambda: x.add_(5), values="stats")
    assert tensor_rows(trace, "aten.add_", "input")["max"].tolist() == [0.0]
    assert tensor_rows(trace, "aten.add_", "output")["max"].tolist() == [5.0]


def test_statistics_stand_at_the_right_tensor():
    def step():
        torch.cat([torch.full((2,), 1.0), torch.full((2,), 2.0)]).chunk(2)
        torch.addcmul(torch.full((1,), 3.0), torch.full((1,), 4.0), torch.full((1,), 5.0), value=2)

    trace = record(step, values="stats")
    assert tensor_rows(trace, "aten.cat", "input")["mean"].tolist() == [1, 2]
    assert tensor_rows(trace, "aten.split", "output")["mean"].tolist() == [1, 2]
    assert tensor_rows(trace, "aten.addcmul", "input")["mean"].tolist() == [3, 4, 5]
    assert tensor_rows(trace, "aten.addcmul", "output")["mean"].tolist() == [43]


def test_a_tensor_that_has_no_numbers_has_no_statistics_and_is_counted():
    x = torch.ones(2, dtype=torch.uint8).view(torch.bits8)
    trace = record(x.clone, values="stats")
    assert trace.tensors[list(COLUMNS)].isna().all(axis=None)
    # The input and the result.
    assert trace.meta["skipped"] == {"statistics not available: torch.strided, torch.bits8 (NotImplementedError)": 2}


def test_no_statistics_unless_asked_for():
    trace = record(lambda: torch.ones(3).exp())
    assert trace.tensors[list(COLUMNS)].isna().all(axis=None)


def test_statistics_leave_the_generator_and_the_flags_alone():
    def step():
        torch.manual_seed(5)
        x = torch.rand(3, requires_grad=True)
        outs.append([torch.nn.functional.dropout(x), x, torch.get_rng_state(), torch.is_grad_enabled()])

    outs = []
    step()
    record(step, values="stats")
    assert bits(outs[0]) == bits(outs[1])


def test_deterministic_mode_makes_no_difference():
    torch.use_deterministic_algorithms(True)
    try:
        trace = record(lambda: torch.tensor([1.0, NAN]) * 2, values="stats")
    finally:
        torch.use_deterministic_algorithms(False)
    assert tensor_rows(trace, "aten.mul", "output")["nan_count"].tolist() == [1]
    assert not [reason for reason in trace.meta["skipped"] if "statistics" in reason]


def test_spans_of_time_of_both_recorders_are_in_one_order():
    spans = TimeSpans()
    spans.add(5, 7)
    spans.add_all(np.array([[1, 2], [8, 9]]).tobytes())
    spans.add(3, 4)
    assert spans.array().tolist() == [[1, 2], [3, 4], [5, 7], [8, 9]]
