"""Tests how much more rounding weighs in a result than in what is read, by hand."""

import pytest

from nbkit.divergence.conditioning import conditioning, ratio
from nbkit.divergence.runs import Read, Tensor


def tensor(rms, numel=16, extent=None, eps=2.0**-23):
    one = Tensor(0, 0, None, "float32", "[]", numel, rms, rms if extent is None else extent, eps)
    return Read(one, one, 0.0, "")


ONE, SMALL, FLAG = tensor(1.0), tensor(1e-3), tensor(1.0, eps=0.0)


@pytest.mark.parametrize(
    ("packet", "read", "made", "factor"),
    [
        ("exp", [ONE], SMALL, 1),
        ("sub", [ONE, SMALL], SMALL, 1000),
        ("add", [SMALL, SMALL], ONE, 1),
        ("add", [SMALL, FLAG], SMALL, 1),
        ("sum", [tensor(1.0, 400)], tensor(1.0, 4), 10),
        ("addcmul", [SMALL, ONE, ONE], SMALL, 1),
        ("native_layer_norm", [tensor(1.0, 64), ONE], tensor(0.5, 16), 4),
        ("native_layer_norm", [ONE, ONE], SMALL, 1),
        ("mul", [tensor(1.0, extent=3.0), tensor(1.0, extent=2.0)], tensor(1.0, extent=1.5), 4),
        ("silu_backward", [tensor(1.0, extent=3.0), tensor(1.0, extent=2.0)], tensor(1.0, extent=1.5), 2),
        ("select", [tensor(1.0, extent=4.0)], tensor(0.1, 4, extent=0.5), 8),
        ("mm", [tensor(1.0, 32), tensor(1.0, 32)], tensor(0.5, 4), 8),
        ("addmm", [SMALL, tensor(1.0, 32), tensor(1.0, 32)], tensor(0.5, 4), 8),
        ("convolution", [tensor(1.0, 32), tensor(1.0, 32), SMALL], tensor(0.5, 4), 8),
        ("addcdiv", [ONE, ONE, ONE], ONE, 4),
    ],
)
def test_what_is_small_beside_what_it_comes_from(packet, read, made, factor):
    assert conditioning(packet, read, made) == pytest.approx(factor)


def test_nothing_may_be_any_number_of_times_off():
    assert conditioning("sub", [ONE, ONE], tensor(0.0)) == float("inf")
    assert (ratio(0.0, 0.0), ratio(1.0, 0.0), ratio(1.0, 4.0)) == (0.0, float("inf"), 0.25)
