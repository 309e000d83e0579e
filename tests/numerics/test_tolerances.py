"""Tests tolerances of the user: what is more special wins, and a mistake is refused before anything runs."""

import pytest
import torch

from nbkit import OptionError, PatternError
from nbkit.numerics.tolerances import Tolerances

MM = "aten.mm.default"


def test_op_and_dtype_wins_over_op_over_dtype_over_default():
    """The op comes before the dtype."""
    given = {"default": (1, 0), "bfloat16": (2, 0), "aten.mm": (3, 0), ("aten.mm", "bfloat16"): (4, 0)}
    tolerances = Tolerances(given)
    assert tolerances.of(MM, "bfloat16") == (4, 0)
    assert tolerances.of(MM, "float32") == (3, 0)
    assert tolerances.of("aten.add.Tensor", "bfloat16") == (2, 0)
    assert tolerances.of("aten.add.Tensor", "float32") == (1, 0)


def test_without_any_the_noise_ratio_decides():
    """There are no default tolerances."""
    assert Tolerances(None).of(MM, "float32") is None


def test_of_two_patterns_the_first_wins():
    assert Tolerances({"*norm*": (1, 0), "native_layer_norm": (2, 0)}).of("aten.native_layer_norm.default", "x") == (
        1,
        0,
    )


def test_patterns_that_met_no_op_are_known():
    tolerances = Tolerances(
        {"aten.mm": (1, 0), "aten.nn": (1, 0), "float16": (1, 0), "int8": (1, 0), "default": (1, 0)}
    )
    tolerances.of(MM, "float16")
    assert tolerances.unused == {"aten.nn", "float16", "int8", "default"}
    tolerances.of("aten.add.Tensor", "int8")
    tolerances.of("aten.add.Tensor", "float32")
    assert tolerances.unused == {"aten.nn", "float16"}


@pytest.mark.parametrize("value", [1e-3, (1,), (-1, 0), ("a", 0), (float("nan"), 0)])
def test_a_value_that_is_no_pair_of_numbers_is_refused(value):
    with pytest.raises(OptionError, match=r"give \(atol, rtol\), two numbers from 0 up"):
        Tolerances({"aten.mm": value})


def test_a_mistyped_dtype_or_pattern_is_refused():
    with pytest.raises(OptionError, match="'bfloat61' is no dtype; did you mean 'bfloat16'"):
        Tolerances({("aten.mm", "bfloat61"): (0, 0)})
    with pytest.raises(PatternError):
        Tolerances({"re:(": (0, 0)})


def test_a_dtype_of_torch_stands_for_its_name():
    tolerances = Tolerances({torch.float32: (1, 0), ("aten.mm", torch.bfloat16): (2, 0), "torch.float16": (3, 0)})
    assert tolerances.of(MM, "float32") == (1, 0)
    assert tolerances.of(MM, "bfloat16") == (2, 0)
    assert tolerances.of(MM, "float16") == (3, 0)
    assert tolerances.of("aten.add.Tensor", "bfloat16") is None
