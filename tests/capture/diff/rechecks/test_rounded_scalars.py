"""A number of a call that the kernel rounds to the dtype of its tensors decides comparisons on its bound."""

import pytest
import torch

from tests.capture.diff.planted import compared, with_fault

ROUNDED = "as with its numbers rounded to the dtypes of its tensors"
# In bfloat16 0.1 is 0.10009765625, and on the bound of a kernel that rounds its number, too.
TENTH = torch.tensor([0.1, 0.0, 1.0], dtype=torch.bfloat16)


def on_the_bound(func, args, out):
    """What a kernel gives that rounds the number, whether this one does or not."""
    return out.copy_(torch.tensor([False, False, True]))


def test_the_side_of_a_rounded_bound_is_right():
    trace = with_fault(lambda: TENTH > 0.1, "aten.gt.Scalar", on_the_bound)
    rows = trace.diffs[["status", "noise_ratio", "mismatch_count", "message"]].to_numpy().tolist()
    assert rows == [["ok", 0.0, 0, ROUNDED]]


def test_any_other_element_is_wrong():
    spoil = lambda func, args, out: out.copy_(torch.tensor([False, True, True]))  # noqa: E731
    trace = with_fault(lambda: TENTH > 0.1, "aten.gt.Scalar", spoil)
    row = trace.diffs.iloc[0]
    assert (row["status"], row["mismatch_count"], row["mismatch_fraction"]) == ("mismatch", 1, 1 / 3)
    assert row["message"] != ROUNDED


@pytest.mark.parametrize(("error", "status"), [(0.0, "ok"), (1e-6, "mismatch")])
def test_what_rounding_a_number_does_to_others_is_allowed(error, status):
    """In float32 0.9999999 is 0.9999998808, and what is left of 1 is a fifth more."""
    start, end = torch.ones(3), torch.zeros(3)
    rounded = lambda func, args, out: out.fill_(1 - torch.tensor(0.9999999).item() + error)  # noqa: E731
    row = with_fault(lambda: torch.lerp(start, end, 0.9999999), "aten.lerp.Scalar", rounded).diffs.iloc[0]
    assert (row["status"], row["max_rel_error"] > 0.1) == (status, True)


def test_what_is_the_same_has_no_message():
    row = compared(lambda: torch.arange(3) > 1).diffs.iloc[0]
    assert (row["status"], row["noise_ratio"], row["mismatch_count"]) == ("ok", 0.0, 0)
    assert row[["message"]].isna().all()
