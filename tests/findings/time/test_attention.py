"""Attention that is made of single ops."""

import json
from typing import Any

from nbkit.findings.time.cases import AttentionCase, Case, Measured, Place
from tests.findings.time.steps import found

HERE = {"model": "Net", "module": "attention", "module_call": 0, "total_time_us": 500.0}
SOFTMAX = {**HERE, "op": "aten.softmax.int"}
SCALE, MASK = {**HERE, "op": "aten.div.Tensor"}, {**HERE, "op": "aten.masked_fill.Scalar"}


def product(**more: Any) -> dict[str, Any]:
    return {**HERE, "op": "aten.bmm.default", **more}


def test_product_softmax_product_is_attention() -> None:
    assert found(product(), SCALE, MASK, SOFTMAX, product()) == [
        (
            "attention",
            "1 attention is made of single ops (product, softmax, product), which take 25 % of the step (2.50 ms)",
        )
    ]


def test_a_softmax_in_a_module_of_its_own_is_part_of_it() -> None:
    below = {"module": "attention.softmax"}
    ((rule, message),) = found(*[product(), {**SOFTMAX, **below}, product()] * 3)
    assert rule == "attention" and message.startswith("3 calls of attention are made of single ops")


def test_other_work_between_the_products_is_another_thing() -> None:
    assert found(product(), {**HERE, "op": "aten.tanh.default"}, SOFTMAX, product()) == []  # soft-capped scores
    assert found(product(), SOFTMAX, {**HERE, "op": "aten.topk.default"}, product()) == []  # a router


def test_linear_layers_around_a_softmax_are_none() -> None:
    linear = {**HERE, "op": "aten.linear.default"}
    assert found(linear, SOFTMAX, linear) == []
    assert found({**HERE, "op": "aten.matmul.default"}, SOFTMAX, {**HERE, "op": "aten.mm.default"}) == []


def test_products_of_two_modules_or_two_calls_are_none() -> None:
    assert found(product(), SOFTMAX, product(module="head")) == []
    assert found(product(), SOFTMAX, product(module_call=1)) == []


def test_little_time_is_no_finding() -> None:
    assert found(product(), SOFTMAX, product(), whole_us=1e6) == []


def test_so_much_may_stand_between_a_product_and_the_softmax() -> None:
    short = {**SCALE, "total_time_us": 20.0}
    message = "1 attention is made of single ops (product, softmax, product), which take 18 % of the step (1.80 ms)"
    assert found(product(), *[short] * 15, SOFTMAX, product()) == [("attention", message)]
    assert found(product(), SOFTMAX, *[short] * 15, product()) == [("attention", message)]
    assert found(product(), *[short] * 16, SOFTMAX, product()) == []
    assert found(product(), SOFTMAX, *[short] * 16, product()) == []


def sized(*shapes: list[int], dtype: str = "bfloat16") -> dict[str, Any]:
    return {"input_shapes": json.dumps([*shapes]), "input_dtypes": json.dumps([dtype] * len(shapes))}


FIRST, LAST = sized([6, 10, 4], [6, 4, 12]), sized([6, 10, 12], [6, 12, 5])
PLACE = Place("bfloat16", "cpu", False)


def test_what_the_fused_op_saves_is_told_where_it_was_run() -> None:
    seen: list[Case] = []

    def measure(case: Case) -> Measured:
        seen.append(case)
        return Measured("fused", 0.25)

    ((_, message),) = found(product(**FIRST), SCALE, SOFTMAX, product(**LAST), measure=measure)
    assert message.endswith(
        "take 20 % of the step (2.00 ms); fused, run on the same shapes, saves at least 15 % of the step (1.50 ms)"
    )
    found(product(**FIRST), MASK, SOFTMAX, {**HERE, "op": "aten.dropout.default"}, product(**LAST), measure=measure)
    assert seen == [
        AttentionCase(6, 10, 12, 4, 5, is_masked=False, has_dropout=False, place=PLACE),
        AttentionCase(6, 10, 12, 4, 5, is_masked=True, has_dropout=True, place=PLACE),
    ]


def test_a_product_of_other_ops_has_the_sizes_of_the_batched_product_in_it() -> None:
    def matmul(at: int) -> dict[str, Any]:
        return {**HERE, "op": "aten.matmul.default", "op_id": at}

    seen: list[Case] = []
    rows = [matmul(1), product(parent_id=1, **FIRST), SOFTMAX, matmul(4), product(parent_id=4, **LAST)]
    assert len(found(*rows, measure=lambda case: seen.append(case))) == 1
    assert next(case for case in seen if isinstance(case, AttentionCase)).value_width == 5


def test_a_fused_op_that_saves_little_is_no_finding() -> None:
    rows = product(**FIRST), SOFTMAX, product(**LAST)
    assert found(*rows, measure=lambda case: Measured("fused", 0.9)) == []
    assert found(*rows, measure=lambda case: Measured("fused", 1.1)) == []


def test_what_could_not_be_run_is_told_without_a_saving() -> None:
    message = "1 attention is made of single ops (product, softmax, product), which take 15 % of the step (1.50 ms)"
    rows = product(**FIRST), SOFTMAX, product(**LAST)
    assert found(*rows, measure=lambda case: None) == [("attention", message)]

    def measure(case: Case) -> Measured:
        raise AssertionError(case)

    other = product(**sized([6, 12, 10], [6, 12, 5]))  # the weights turned around
    assert found(product(**FIRST), SOFTMAX, other, measure=measure) == [("attention", message)]
    assert found(product(), SOFTMAX, product(**LAST), measure=measure) == [("attention", message)]
