"""Module trees of a OneFlow log, as rows."""

from typing import Any

from nbkit.readers.oneflow.log.modules import ModuleTree, merged, module_rows, parent_of
from nbkit.readers.oneflow.text.tensor_text import TensorText, tensor_text


def tree(types: dict[str, str], **more: Any) -> ModuleTree:
    made = ModuleTree()
    made.types = types
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_modules_sum_up_what_they_hold_and_hang_below_what_was_printed() -> None:
    weight, half = TensorText((2, 3), "float32", True), TensorText((4,), "float16", False)
    made = tree(
        {"g": "Graph", "g.blocks.0": "Block", "g.blocks.0.fc": "Linear"},
        parameters={"g.blocks.0.fc.weight": weight, "g.bias": half, "g.x": TensorText(None, None, False)},
        buffers={"g.blocks.0.mean": half},
        calls={"g.blocks.0": 2},
    )
    columns = (
        "module",
        "type",
        "parent",
        "depth",
        "calls",
        "params",
        "trainable_params",
        "param_bytes",
        "buffer_bytes",
    )
    rows = module_rows("G", made, {"g.bias"})
    assert [[row[name] for name in columns] for row in rows] == [
        ["g", "Graph", None, 0, 0, 10, 6, 32, 8],
        ["g.blocks.0", "Block", "g", 1, 2, 6, 6, 24, 8],
        ["g.blocks.0.fc", "Linear", "g.blocks.0", 2, 0, 6, 6, 24, 0],
    ]
    assert {row["model"] for row in rows} == {"G"}
    assert (parent_of("g.other.x", made), parent_of("g", made)) == ("g", None)


def test_the_tree_of_the_building_and_that_of_the_listing_are_one() -> None:
    old, new = TensorText((2,), "float32", True), TensorText((3,), "float32", False)
    built = tree({"g": "A", "g.b": "B"}, calls={"g": 2}, parameters={"g.w": old}, arguments={"g": "x", "g.b": "y"})
    listed = tree({"g": "C", "g.c": "D"}, calls={"g": 9}, parameters={"g.w": new, "g.v": new}, arguments={"g": "z"})
    made = merged(built, listed)
    assert list(made.types.items()) == [("g", "C"), ("g.c", "D"), ("g.b", "B")]
    assert made.parameters == {"g.w": TensorText((3,), "float32", True), "g.v": new}
    assert (made.calls, made.arguments) == ({"g": 2}, {"g": "z", "g.b": "y"})
    assert merged(None, listed).calls == {"g": 1, "g.c": 1}
    assert merged(tree({}), listed).calls == {"g": 1, "g.c": 1}
    assert merged(None, None).is_empty
    assert not made.is_empty


def test_texts_of_tensors() -> None:
    assert tensor_text("tensor(..., size=(8, 1024), dtype=oneflow.float32, requires_grad=True)") == (
        TensorText((8, 1024), "float32", True)
    )
    assert tensor_text("tensor(..., grad_fn=<accumulate_grad>, flow.Size([3]), dtype=oneflow.int64") == (
        TensorText((3,), "int64", True, grad_fn="accumulate_grad")
    )
    assert tensor_text("tensor(..., size=(), dtype=oneflow.bool)") == TensorText((), "bool", False)
    assert tensor_text("tensor(..., size=(8, 10") == TensorText(None, None, False)
