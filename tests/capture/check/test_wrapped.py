"""Integers of 8 or 16 bits that go beyond their dtype's end, and on from the other one, are a finding."""

import pytest
import torch

import nbkit

ONE, OTHER = torch.tensor([10, 200, 255], dtype=torch.uint8), torch.tensor([20, 100, 1], dtype=torch.uint8)


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def found(step):
    with nbkit.opcheck() as trace:
        step()
    return [*trace.findings.itertuples()]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: ONE - OTHER, "1 of 3 elements is beyond uint8, the first at [0]: -10 became 246 (it holds 0 to 255)"),
        (lambda: ONE + OTHER, "2 of 3 elements are beyond uint8, the first at [1]: 300 became 44 (it holds 0 to 255)"),
        (lambda: ONE * 2, "2 of 3 elements are beyond uint8, the first at [1]: 400 became 144 (it holds 0 to 255)"),
        (lambda: -ONE, "3 of 3 elements are beyond uint8, the first at [0]: -10 became 246 (it holds 0 to 255)"),
        (lambda: ONE.to(torch.int16) * 300, "2 of 3 elements are beyond int16, the first at [1]: 60000 became -5536 "
         "(it holds -32768 to 32767)"),
        (lambda: torch.tensor(-128, dtype=torch.int8).abs(), "its only element is beyond int8: 128 became -128 "
         "(it holds -128 to 127)"),
    ],
)  # fmt: skip
def test_what_wraps_is_a_warning(step, message):
    [finding] = found(step)
    assert (finding.rule, finding.severity, finding.message) == ("wrapped", "warning", message)
    assert finding.source_text.startswith("(lambda:")


def test_what_fits_and_wider_integers_do_not():
    assert not found(lambda: (ONE.int() - OTHER.int(), ONE.float() - OTHER, ONE // 3, ONE.sum(), ONE & OTHER, ~ONE))
    assert not found(lambda: torch.tensor([2**62]) * 37)  # a hash
    assert not found(lambda: (torch.tensor([100], dtype=torch.uint8) + 100, ONE > OTHER))


def test_stop_ends_the_step_there():
    with pytest.raises(nbkit.NonFiniteError, match="beyond uint8"), nbkit.opcheck(stop=True):
        ONE - OTHER
