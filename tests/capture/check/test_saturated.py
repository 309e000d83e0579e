"""A cast that gives numbers for such as its dtype does not hold is a finding, as neither NaN nor Inf shows it."""

import pytest
import torch

import nbkit

INF, NAN = float("inf"), float("nan")
E4M3 = torch.float8_e4m3fn
E4M3FNUZ, E5M2, E5M2FNUZ = torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def checked(values, dtype, source=torch.float32):
    """Returns rule and message of each finding of a cast."""
    x = torch.tensor(values, dtype=source)
    with nbkit.opcheck() as trace:
        x.to(dtype)
    return list(zip(trace.findings["rule"], trace.findings["message"], strict=True))


@pytest.mark.parametrize("value", [465.0, 500.0, 1e9, -700.0, INF])
@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16])
def test_what_a_float8_without_inf_cannot_hold_is_told(value, source):
    if source is torch.bfloat16 and value == 465.0:
        value = 466.0  # a bfloat16
    ((rule, message),) = checked([1.0, value], E4M3, source)
    was, end = f"{torch.tensor(value, dtype=source).item():.4g}", 448 if value > 0 else -448
    assert (rule, message) == (
        "saturated", f"1 of 2 elements is beyond float8_e4m3fn, the first at [1]: {was} became {end} (it ends at 448)"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "rule"), [(E4M3FNUZ, "nan"), (E5M2, "overflow"), (E5M2FNUZ, "nan"), (torch.float16, "overflow")]
)
def test_where_a_nan_or_an_inf_is_left_that_is_told(dtype, rule):
    assert [found for found, _ in checked([1.0, 1e9], dtype)] == [rule]


def test_values_in_range_those_that_round_to_its_end_and_clamped_ones_are_right():
    assert checked([448.0, -448.0, 463.0, 0.0, 1e-3], E4M3) == []
    x = torch.tensor([500.0, -1e9, INF])
    with nbkit.opcheck() as trace:
        x.clamp(-448, 448).to(E4M3)
    assert not len(trace.findings)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (300.0, torch.int8, "300 became"),
        (-1.0, torch.uint8, "-1 became"),
        (3e9, torch.int32, "3e+09 became"),
        (2.0**63, torch.int64, "9.223e+18 became"),
    ],
)
def test_numbers_beyond_an_integer_are_told(value, dtype, text):
    ((rule, message),) = checked([1.0, value], dtype)
    assert rule == "saturated"
    assert text in message and message.endswith("and torch does not define what others become)")


def test_integers_that_are_held_and_what_is_no_number_are_not():
    assert checked([127.9, -128.9], torch.int8) == checked([255.9, -0.9], torch.uint8) == []
    assert checked([2147483520.0, -2147483648.0], torch.int32) == []  # the float32 below the end
    assert checked([9e18, -(2.0**63)], torch.int64) == checked([300.0, 0.0], torch.bool) == []
    x = torch.tensor([0.0, 2.0])
    with nbkit.opcheck() as trace:
        torch.where(x > 0, x.log().long(), 0)  # as T5 finds its buckets: a mask takes the -Inf out
    assert not len(trace.findings)


def test_copies_into_integers_and_broadcast_ones_are_casts():
    with nbkit.opcheck() as trace:
        torch.zeros(2, 3, dtype=torch.uint8).copy_(torch.tensor([300.0, -1.0, 3.0]))
    (finding,) = trace.findings.to_dict("records")
    assert (finding["rule"], finding["severity"], finding["op"]) == ("saturated", "warning", "aten.copy_.default")
    assert finding["message"].startswith("4 of 6 elements are beyond uint8, the first at [0, 0]: 300 became 44")
    assert trace.brief().startswith("1 warning. 1 result checked")


def test_stop_ends_the_step_there():
    with pytest.raises(nbkit.NonFiniteError, match="beyond float8_e4m3fn"), nbkit.opcheck(stop=True):
        torch.tensor([500.0]).to(E4M3)
