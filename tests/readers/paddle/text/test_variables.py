"""Tests declarations of variables in readable programs."""

import pytest

from nbkit.readers.paddle.text.variables import parse


def read(text):
    variable, damage = parse(text)
    return (
        variable.name,
        variable.type,
        variable.shape,
        variable.dtype,
        variable.persistable,
        variable.is_parameter,
    ), damage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "persist trainable param w : LOD_TENSOR.shape(13, 10).dtype(float16).stop_gradient(False)",
            ("w", "LOD_TENSOR", (13, 10), "float16", True, True),
        ),
        (
            "persist var s : DENSE_TENSOR.shape().dtype(paddle.bfloat16)",
            ("s", "DENSE_TENSOR", (), "bfloat16", True, False),
        ),
        ("var t : SELECTED_ROWS.shape(-1,).dtype(int64)", ("t", "SELECTED_ROWS", (-1,), "int64", False, False)),
        ("var s : STEP_SCOPES)", ("s", "STEP_SCOPES", None, None, False, False)),
        (
            "persist trainable parameter w : fluid.VarType.LOD_TENSOR.shape(13L, 10L).astype(VarType.FP32)",
            ("w", "LOD_TENSOR", (13, 10), "float32", True, True),
        ),
        ("param a : b[0] : base.VarType.RAW)", ("a : b[0]", "RAW", None, None, False, True)),
        ("var x, dist_attr = { : READER)", ("x, dist_attr = {", "READER", None, None, False, False)),
    ],
)
def test_declarations_of_all_ages(text, expected):
    assert read(text) == (expected, None)


def test_facts_beside_the_type():
    text = "persist param b : LOD_TENSOR.shape(8,).dtype(float32).stop_gradient(True)"
    mesh = "process_mesh (annotated): {shape: [2], process_ids: [0,1], dim_names: [x]}"
    variable, damage = parse(f"{text}, dist_attr = {{tensor name: b, {mesh}, dims_mapping (annotated): [0]}}")
    assert damage is None
    assert (variable.attributes["trainable"], variable.attributes["stop_gradient"]) == (False, True)
    assert variable.attributes["dist_attr"]["process_mesh"]["process_ids"] == [0, 1]


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        ("var x : LOD_TENSOR.shape(1, 2", "its shape and dtype cannot be read"),
        ("var x : LOD_TENSOR.shape(1, \x00).dtype(float32)", "its shape and dtype cannot be read"),
        ("var x : LOD_TENSOR.shape(1,).dtype(float32).stop_gradient(Tr", "'.stop_gradient(Tr' follows it"),
        ("var x : RAW), dist_attr = {tensor name: x, proc", "its dist_attr is cut"),
    ],
)
def test_damage_is_said_and_the_name_kept(text, damage):
    assert (read(text)[0][0], read(text)[1]) == ("x", damage)


@pytest.mark.parametrize(
    "text", ["var x", "var x : ", "variable : LOD_TENSOR)", "x : LOD_TENSOR.shape(1,)", "var x : y"]
)
def test_other_lines_declare_nothing(text):
    assert parse(text) is None
