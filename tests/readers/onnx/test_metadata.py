"""What torch.onnx.export leaves in a file about the model."""

from onnx import helper

from nbkit.readers.onnx.metadata import (
    CLASSES,
    FX_NODE,
    SCOPES,
    SIGNATURE,
    linear_weights,
    names,
    scope_of,
    signature_of,
    source_of,
)


def test_modules_around_a_node_as_the_exporter_lists_them() -> None:
    paths, classes = (
        "['', 'blocks.0', 'blocks.0.fc@1', 'linear']",
        "['m.Net', 'm.Block', 'torch.Linear', 'aten.linear']",
    )
    scope = scope_of({SCOPES: paths, CLASSES: classes}, "node", is_torch=True)
    assert scope.modules == [("", "Net"), ("blocks.0", "Block"), ("blocks.0.fc", "Linear")]
    assert (scope.torch_op, scope.module) == ("aten.linear", "blocks.0.fc")
    scope = scope_of({SCOPES: "['', 'fc', 'linear']"}, "node", is_torch=True)
    assert (scope.modules, scope.torch_op, scope.module) == ([("", ""), ("fc", "")], None, "fc")
    assert scope_of({SCOPES: "['linear']", CLASSES: "['a']"}, "n", is_torch=True).module is None


def test_modules_from_the_name_that_an_earlier_exporter_wrote() -> None:
    scope = scope_of({}, "/blocks/0/fc/MatMul", is_torch=True)
    assert scope.modules == [("", ""), ("blocks", ""), ("blocks.0", ""), ("blocks.0.fc", "")]
    assert scope.torch_op is None
    assert scope_of({}, "/MatMul", is_torch=True).modules == [("", "")]
    for scope in (scope_of({}, "/fc/MatMul", is_torch=False), scope_of({}, "MatMul", is_torch=True)):
        assert (scope.modules, scope.torch_op) == ([], None)


def test_lists_of_names_are_literals_alone() -> None:
    assert names("['a', 'b', 3]") == ["a", "b"]
    assert names("('a',)") == names("__import__('os')") == names("[") == []
    assert names(f"['{'x' * 100_000}']") == []
    assert names(f"['{'x' * 99_996}']") == ["x" * 99_996]


def test_a_node_is_of_the_innermost_line_outside_of_torch() -> None:
    inside = '  File "/env/site-packages/torch/nn/modules/linear.py", line 3, in forward'
    stack = f'File "/m/a.py", line 1, in main\n    a\n  File "/m/b.py", line 22, in forward\n{inside}'
    assert (source_of(stack) or "").endswith("b.py:22")
    assert source_of(inside) is source_of("") is None


def test_parameters_of_the_exported_program() -> None:
    text = "\n".join(
        (
            "p_fc_weight: PARAMETER target='fc.weight'",
            "b_mean: BUFFER target='mean' persistent=True",
            "c_0: CONSTANT_TENSOR target='lifted'",
            "x: USER_INPUT",
        )
    )
    signature = signature_of({SIGNATURE: text})
    assert signature == {
        "p_fc_weight": ("parameter", "fc.weight"),
        "b_mean": ("buffer", "mean"),
        "c_0": ("constant", "lifted"),
    }
    assert signature_of({}) == {}

    def made_of(op_type: str, weight: str, placeholder: str) -> object:
        node = helper.make_node(op_type, ["x", weight], ["y"])
        entry = node.metadata_props.add()
        entry.key, entry.value = FX_NODE, f"target=torch.ops.aten.linear.default](args = (%x, %{placeholder}"
        return node

    nodes = [
        made_of("MatMul", "val_3", "p_fc_weight"),
        made_of("Gemm", "val_3", "p_fc_weight"),
        made_of("Gemm", "val_4", "b_mean"),
        made_of("Add", "val_5", "p_fc_weight"),
        made_of("MatMul", "val_6", "unknown"),
        helper.make_node("MatMul", ["x", "val_7"], ["y"]),
    ]
    assert linear_weights(nodes, signature) == {"val_3": "fc.weight"}
