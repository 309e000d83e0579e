"""How the tensors of a pair are related, from their shapes and dtypes."""

import pytest

from nbkit.analysis.graph_match.rows import difference, relation_of
from nbkit.analysis.graph_match.side import Node, Shape

TYPES = "float32 on the left, int8 on the right"


def tensor(shape: Shape | None, dtype: str | None = "float32") -> Node:
    return Node(0, "parameter", None, "", "w", None, None, None, None, dtype, shape)


def test_tensors_of_one_shape_are_the_same_cast_or_transposed() -> None:
    assert relation_of(tensor((4, 4)), tensor((4, 4))) == "same"
    assert relation_of(tensor((4, 4)), tensor((4, 4), "float16")) == "cast"
    assert relation_of(tensor((4, 4)), tensor((4, 4), None)) == "same"
    assert relation_of(tensor((4, 4), None), tensor((4, 4))) == "same"
    assert relation_of(tensor((4, 4)), tensor((4, 4), "float16"), is_turned=True) == "permute"
    assert relation_of(tensor((2, 8)), tensor((4, 4), "float16"), is_turned=True) == "reshape"


@pytest.mark.parametrize(
    ("left", "right", "is_turned", "expected"),
    [
        (tensor((4, 4)), tensor((4, 4)), False, None),
        (tensor((4, 4)), tensor((4, 4)), True, "square, and transposed as the other weights of these graphs"),
        (tensor((2, 3)), tensor((3, 2)), True, "transposed; [2, 3] on the left, [3, 2] on the right"),
        (tensor((2, 3, 4)), tensor((4, 3, 2)), False, "permuted; [2, 3, 4] on the left, [4, 3, 2] on the right"),
        (tensor((2, None)), tensor((6,)), False, "[2, ?] on the left, [6] on the right"),
        (tensor(None), tensor((6,)), False, None),
        (tensor((6,)), tensor(None), False, None),
        (tensor((6,)), tensor((6,), "int8"), False, TYPES),
        (tensor((6,)), tensor((2,), "int8"), False, "[6] on the left, [2] on the right; " + TYPES),
        (tensor((6,), None), tensor((6,)), False, None),
        (tensor((6,)), tensor((6,), None), False, None),
    ],
)  # fmt: skip
def test_what_differs_is_said_in_words(left: Node, right: Node, is_turned: bool, expected: str | None) -> None:
    assert difference(left, right, is_turned=is_turned) == expected
