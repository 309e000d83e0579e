"""Attention that is made of single ops."""

from typing import Any

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
