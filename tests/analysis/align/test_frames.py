"""The frames of an alignment: rows in order, what is folded, results of both sides, both graphs."""

import numpy as np

from nbkit.analysis.align.align import align
from nbkit.analysis.align.frames import alignment_frame, frames_of, results_frame
from nbkit.schema import ALIGNMENT, RESULTS
from tests.analysis.align.makers import execution, numbers

X, W = numbers(0, 4, 6), numbers(1, 4, 6)
SMALL = execution(("x", None, [], X), ("layer.weight", None, [], W), ("y", "Add", ["x", "layer.weight"], X + W))


def unfused():
    product = X * W
    return execution(
        ("x", None, [], X),
        ("layer.weight", None, [], W),
        ("product", "Mul", ["x", "layer.weight"], product),
        ("y", "Tanh", ["product"], np.tanh(product)),
    )


def fused():
    value = np.tanh(X * W)
    return execution(("x", None, [], X), ("layer.weight", None, [], W), ("y", "MulTanh", ["x", "layer.weight"], value))


def test_an_inner_result_is_folded_into_the_fused_op():
    row = alignment_frame(align(unfused(), fused())).set_index("name").loc["product"]
    assert (row["mark"], row["action"], row["relation"]) == ("-", "left_only", "folded")
    assert row["message"] == "a step inside MulTanh of the right"


def test_an_inner_result_of_the_right_is_folded_too():
    row = alignment_frame(align(fused(), unfused())).set_index("right_name").loc["product"]
    assert (row["mark"], row["action"], row["relation"]) == ("+", "right_only", "folded")


def test_results_of_one_side_alone_say_why():
    mask = np.tri(4, 6, dtype=bool)
    left = execution(
        ("x", None, [], X),
        ("flags", "Less", [], mask),
        ("mask", "Not", ["flags"], ~mask),
        ("y", "Where", ["mask", "x"], X * ~mask),
        ("z", "Reshape", ["y"], (X * ~mask).reshape(-1)),
        ("unread", "Exp", ["x"], np.exp(X)),
        outputs=["z"],
    )
    right = execution(
        ("x", None, [], X),
        ("mask", "Constant", [], ~mask),
        ("y", "Where", ["mask", "x"], X * ~mask),
        ("sizes", "Constant", [], np.array([24])),
        ("z", "Reshape", ["y", "sizes"], (X * ~mask).reshape(-1)),
    )
    rows = alignment_frame(align(left, right))
    alone = rows[rows["action"] != "match"]
    found = dict(zip(alone["name"].fillna(alone["right_name"]), alone["relation"], strict=True))
    assert found == {"flags": "folded", "unread": "unused", "sizes": "constant"}
    assert set(alone["message"]) == {
        "a step to what the right has as the constant mask",
        "no output is made of it",
        "a constant that Reshape reads",
    }


def test_a_side_without_results_leaves_a_row_for_each_of_the_other():
    rows = alignment_frame(align(SMALL, execution()))
    assert rows["mark"].tolist() == ["-"] * 3
    assert rows["name"].tolist() == ["x", "layer.weight", "y"]


def test_zeros_equal_zeros_in_every_metric():
    zeros = execution(("x", None, [], X), ("y", "Mul", ["x"], np.zeros((4, 6), np.float32)))
    row = alignment_frame(align(zeros, zeros)).set_index("name").loc["y"]
    assert row["mark"] == "="
    assert row[["output_error", "max_abs_error", "max_rel_error", "max_ulp"]].tolist() == [0, 0, 0, 0]


def test_results_are_numbered_over_both_sides():
    rows = results_frame(SMALL, SMALL)
    assert rows["result_id"].tolist() == list(range(6))
    assert rows["side"].tolist() == ["left"] * 3 + ["right"] * 3
    assert rows["is_output"].tolist() == [False, False, True] * 2
    assert rows["reads"].tolist() == ["[]", "[]", "[0, 1]", "[]", "[]", "[3, 4]"]


def test_all_frames_follow_their_schema_and_hold_both_graphs():
    frames = frames_of(align(SMALL, SMALL))
    ALIGNMENT.check(frames["alignment"])
    RESULTS.check(frames["results"])
    assert frames["alignment"]["right_id"].tolist() == [3, 4, 5]
    assert frames["nodes"]["graph"].nunique() == 2
