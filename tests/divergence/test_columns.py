"""How the two things of a row correspond: which side has it, its mark, shapes and dtypes."""

import pytest

from nbkit.divergence.columns import Shape, action_of, mark_of, shape_relation, tensor_relation


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((2, 3), (2, 3), "same"),
        (None, (2, 3), "same"),
        ((2, 3), None, "same"),
        ((2, 3), (3, 2), "permute"),
        ((2, 3, 4), (4, 2, 3), "permute"),
        ((1, 3), (3, 1), "reshape"),
        ((2, 3), (6,), "reshape"),
        ((2, 3), (3, 3), "other"),
        ((2, 2), (2, 8), "other"),
        ((2, None), (6,), "other"),
        ((6,), (None, 2), "other"),
        ((2, None), (None, 2), "permute"),
    ],
)
def test_shapes_are_related(left: Shape | None, right: Shape | None, expected: str) -> None:
    assert shape_relation(left, right) == expected


def test_two_known_dtypes_of_one_shape_are_a_cast() -> None:
    dtypes = ("float32", "float16")
    assert tensor_relation((4, 4), (4, 4), dtypes) == tensor_relation(None, (2,), dtypes) == "cast"
    assert tensor_relation((4, 4), (4, 4), ("float32", None)) == "same"
    assert tensor_relation((4, 2), (2, 4), dtypes) == "permute"


def test_marks_say_who_has_it_and_whether_they_agree() -> None:
    actions = [action_of(0, None), action_of(None, 0), action_of(0, 0)]
    assert actions == ["left_only", "right_only", "match"]
    assert [mark_of(action, agrees=False) for action in actions] == ["-", "+", "~"]
    assert mark_of("match", agrees=True) == "="
