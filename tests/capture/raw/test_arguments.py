"""The arguments of an op as JSON, and where its tensors lie among them."""

import json
from typing import Any

import pytest
import torch

from nbkit.capture.raw.arguments import A_TENSOR, Arguments, describe, describer

ATEN = torch.ops.aten
SUMMED = {"dim": [0, 1], "keepdim": False, "dtype": "float16"}


def described(func: Any, *args: Any, **kwargs: Any) -> Arguments | None:
    skipped: list[str] = []
    found = describer(skipped.append)(func, args, kwargs)
    assert skipped == []
    return found


@pytest.mark.parametrize(
    ("func", "values", "known", "form"),
    [
        (ATEN.relu.default, [A_TENSOR], None, (-1,)),
        (ATEN.add.Tensor, [A_TENSOR, A_TENSOR, 1], {"alpha": 1}, (-1, -1, None)),
        (ATEN.add.Tensor, [A_TENSOR, 2.5, True], {"other": 2.5, "alpha": True}, (-1, None, None)),
        (ATEN.clamp.default, [A_TENSOR, None, float("inf")], {"max": "inf"}, (-1, None, None)),
        (ATEN.cat.default, [(A_TENSOR, A_TENSOR), -1], {"dim": -1}, (2, None)),
        (ATEN.cat.default, [(), 0], {"tensors": [], "dim": 0}, (None, None)),
        (ATEN.index.Tensor, [A_TENSOR, (None, A_TENSOR)], None, (-1, 1)),
        (ATEN.sum.dim_IntList, [A_TENSOR, (0, 1), False, torch.float16], SUMMED, (-1, None, None, None)),
        (ATEN.fill.Scalar, [A_TENSOR, 1 + 2j], {"value": "(1+2j)"}, (-1, None)),
    ],
)  # fmt: skip
def test_what_is_no_tensor_is_json_by_its_name(func: Any, values: list[Any], known: Any, form: Any) -> None:
    text, found = describe(func, values)
    assert (None if text is None else json.loads(text), found) == (known, form)


def test_defaults_are_filled_in_and_out_is_left_out() -> None:
    x = torch.ones(2)
    assert described(ATEN.add.Tensor, x, x) == Arguments('{"alpha": 1}', (-1, -1, None))
    assert described(ATEN.add.out, x, x, alpha=3, out=x) == Arguments('{"alpha": 3}', (-1, -1, None))
    assert described(ATEN.cat.default, [x, x]) == Arguments('{"dim": 0}', (2, None))
    known = {"size": [2], "dtype": "float32", "layout": "strided", "device": "cpu"}
    options = {"dtype": torch.float32, "layout": torch.strided, "device": torch.device("cpu")}
    text, form = described(ATEN.rand.generator, [2], generator=torch.Generator(), **options) or ("", ())
    assert (json.loads(text or ""), form) == (known, (None,) * 6)


def test_calls_that_are_alike_share_one_and_equal_keys_of_other_types_do_not() -> None:
    describe_one = describer(lambda reason: None)
    x = torch.ones(2)
    first = describe_one(ATEN.mul.Scalar, (x, 1), {})
    assert describe_one(ATEN.mul.Scalar, (torch.zeros(3), 1), {}) is first
    assert [describe_one(ATEN.mul.Scalar, (x, value), {}).text for value in (1, 1.0, True)] == [  # type: ignore[union-attr]
        '{"other": 1}',
        '{"other": 1.0}',
        '{"other": true}',
    ]


def test_what_cannot_be_described_is_told_and_what_is_no_op_is_not() -> None:
    skipped: list[str] = []
    describe_one = describer(skipped.append)
    assert describe_one(torch.add, (torch.ones(2),), {}) is None
    assert skipped == []
    assert describe_one(ATEN.mul.Scalar, (torch.ones(2), {}), {}) is None
    assert skipped == ["arguments not described (TypeError)"]
