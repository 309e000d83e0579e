"""Each planted fault is named by its own kind, whatever noise there is; what is of no kind has none."""

import numpy as np
import pytest

from nbkit.analysis.align.kinds.case import Case
from nbkit.analysis.align.kinds.find import kind_of
from nbkit.analysis.align.kinds.registry import kind_tests
from tests.analysis.align.kinds.planted import ALL
from tests.analysis.align.kinds.regions import halved, layer_norm, noisy, parameter, randn, region

IDS = [f"{one.kind}: {one.name}" for one in ALL]


@pytest.mark.parametrize("planted", ALL, ids=IDS)
def test_planted_fault_is_named(planted):
    kind = kind_of(planted.region)
    assert kind is not None
    assert kind.name == planted.kind, kind.message
    assert [word for word in planted.words if word not in kind.message] == [], kind.message
    assert kind.explained <= 0.2


@pytest.mark.parametrize("planted", ALL, ids=IDS)
def test_kind_is_the_same_under_noise(planted):
    if planted.kind == "accumulation_dtype":
        return
    kind = kind_of(noisy(planted.region))
    assert kind is not None
    assert kind.name == planted.kind, kind.message


@pytest.mark.parametrize("planted", ALL, ids=IDS)
def test_kind_is_the_same_in_bfloat16(planted):
    kind = kind_of(halved(planted.region))
    if planted.rounds:
        assert kind is not None
    assert kind is None or kind.name == planted.kind, kind.message


@pytest.mark.parametrize("planted", ALL, ids=IDS)
def test_no_other_kind_explains_it(planted):
    with np.errstate(all="ignore"):
        named = {test.name for test in kind_tests() if test(Case(planted.region)) is not None}
    is_weight = planted.region.kind in ("parameter", "buffer")  # which has other values anyway
    assert named - ({"other_weights"} if is_weight else set()) - set(planted.also) == {planted.kind} - (
        {"other_weights"} if is_weight else set()
    )


def test_every_kind_is_planted_three_times():
    counts = {test.name: sum(one.kind == test.name for one in ALL) for test in kind_tests()}
    assert min(counts.values()) >= 3, counts


def test_parameter_inside_is_named():
    weight, other = parameter("norm.weight", 1 + randn(32, seed=3)), parameter("norm.weight", 1 + randn(32, seed=4))
    x = layer_norm(randn(2, 16, 32))
    one = region(x * weight.value, x * other.value, left_ops=[weight], right_ops=[other])
    kind = kind_of(one)
    assert kind is not None
    assert kind.name == "other_weights"
    assert "norm.weight" in kind.message
