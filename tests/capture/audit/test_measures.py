"""Gradients and changes of parameters, measured."""

from math import isnan, sqrt

import pytest
import torch

from nbkit.capture.audit.measures import Gradient, later, measured_change, measured_gradient, norm_of

NAN = float("nan")
WRONG_LAYOUTS = {
    "meta": lambda: torch.zeros(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "no elements": lambda: torch.zeros(0),
}


def test_a_gradient_is_none_zero_finite_or_not() -> None:
    assert measured_gradient(None) == Gradient("none", None, None)
    assert measured_gradient(torch.zeros(4)) == Gradient("zero", 0.0, 1.0)
    assert measured_gradient(torch.tensor([3.0, 0.0, 4.0, 0.0])) == Gradient("finite", 5.0, 0.5)
    state, norm, zeros = measured_gradient(torch.tensor([1.0, NAN, 0.0, 0.0])) or Gradient("")
    assert (state, zeros) == ("non_finite", 0.5)
    assert norm is not None and isnan(norm)


def test_a_sparse_gradient_counts_its_rows_together_and_the_rest_as_zero() -> None:
    sparse = torch.sparse_coo_tensor(
        [[0, 0, 2]], torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 4.0]]), (4, 2), check_invariants=True
    )
    assert measured_gradient(sparse) == Gradient("finite", 5.0, 0.75)


@pytest.mark.parametrize("layout", WRONG_LAYOUTS)
def test_a_gradient_whose_values_cannot_be_read_is_unknown(layout: str) -> None:
    assert measured_gradient(WRONG_LAYOUTS[layout]()) is None


def test_a_gradient_in_float8_is_measured() -> None:
    gradient = torch.tensor([3.0, 0.0, 4.0, 0.0])
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        assert measured_gradient(gradient.to(dtype)) == Gradient("finite", 5.0, 0.5)
    assert measured_gradient(torch.zeros(4, dtype=torch.float8_e5m2)) == Gradient("zero", 0.0, 1.0)


def test_norms_are_of_float64_and_of_both_parts_of_complex_numbers() -> None:
    assert norm_of(torch.tensor([3 + 4j, 0j])) == 5.0
    assert norm_of(torch.full((4,), 1e30)) == pytest.approx(2e30, rel=1e-7)  # its square is no float32
    assert norm_of(torch.tensor([3, 4])) == 5.0


def test_of_several_steps_the_one_that_tells_most_is_kept() -> None:
    none, zero, bad = Gradient("none"), Gradient("zero", 0.0, 1.0), Gradient("non_finite", 1.0, 0.0)
    first, second = Gradient("finite", 1.0, 0.0), Gradient("finite", 2.0, 0.0)
    assert later(bad, first) == later(first, bad) == later(None, bad) == later(bad, None) == bad
    assert later(none, zero) == later(zero, none) == zero
    assert later(first, second) == second
    assert later(None, None) is None


def test_a_change_is_its_norm_and_the_share_of_changed_elements() -> None:
    before = torch.tensor([3.0, 4.0, 0.0, 0.0])
    assert measured_change(before, torch.tensor([3.0, 4.5, 0.0, 0.0])) == (0.1, 0.25)
    assert measured_change(before, before.clone()) == (0.0, 0.0)
    assert measured_change(before, torch.tensor([3.0, 4.0, -0.0, 0.0])) == (0.0, 0.25)
    assert measured_change(torch.zeros(2), torch.ones(2)) == (None, 1.0)
    assert measured_change(torch.tensor([NAN]), torch.tensor([NAN]))[1] == 0.0
    assert measured_change(torch.tensor([1, 2]), torch.tensor([1, 3])) == (None, 0.5)
    assert measured_change(torch.tensor([True, False]), torch.tensor([True, True])) == (None, 0.5)


def test_a_change_of_complex_and_conjugated_numbers() -> None:
    before = torch.tensor([3 + 4j, 0j])
    assert measured_change(before, torch.tensor([3 + 5j, 0j])) == (pytest.approx(0.2), 0.5)
    assert measured_change(before, torch.tensor([0j, 0j])) == (1.0, 0.5)
    assert measured_change(before[:1], torch.tensor([3 - 4j]).conj()) == (0.0, 0.0)
    assert measured_change(before, torch.tensor([3 + 4j, complex(0.0, -0.0)])) == (0.0, 0.5)
    many = torch.arange(8.0).to(torch.complex64).reshape(2, 4)
    assert measured_change(many, many + torch.eye(2, 4))[1] == 0.25
    not_a_number = torch.tensor([complex(NAN, 0.0), 1j])
    assert measured_change(not_a_number, not_a_number.clone())[1] == 0.0


def test_a_small_change_of_half_precision_keeps_its_size() -> None:
    before = torch.full((4,), 1.0, dtype=torch.bfloat16)
    after = before.clone()
    after[0] = 1.0 + 2**-7
    assert measured_change(before, after) == (2**-7 / sqrt(4), 0.25)


def test_tensors_that_are_not_alike_have_no_change() -> None:
    one = torch.ones(2)
    for other in (torch.ones(3), one.double(), torch.ones(2, device="meta")):
        assert measured_change(one, other) == (None, None)
    assert measured_change(torch.ones(0), torch.ones(0)) == (None, None)
