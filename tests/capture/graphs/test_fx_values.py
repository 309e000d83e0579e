"""What is read of an FX node: its value, its arguments, where it belongs."""

from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from nbkit.capture.graphs.fx_values import (
    module_stack,
    named_arguments,
    nodes_in,
    phase,
    plain,
    sizes,
    source_line,
    symbolic_sizes,
    tensor_columns,
    value_of,
    written,
)


def called(target: Any, *arguments: Any, **named: Any) -> tuple[Node, Node]:
    """A node that is read, and one that calls the target with it and these arguments."""
    graph = Graph()
    x = graph.placeholder("x")
    return x, graph.call_function(target, (x, *arguments), named)


def test_a_value_is_torchs_own_example_of_it() -> None:
    x, _ = called(torch.ops.aten.relu.default)
    assert value_of(x) is None
    x.meta["tensor_meta"] = 1
    assert value_of(x) == 1
    x.meta["val"] = 0
    assert value_of(x) == 0


def test_columns_of_tensors_lists_and_things_without_a_shape() -> None:
    known = {"dtype": "float16", "device": "cpu", "shape": [2, 3]}
    tensor = torch.zeros(2, 3, dtype=torch.float16)
    assert tensor_columns(tensor) == tensor_columns([None, tensor]) == tensor_columns((3, tensor)) == known
    assert tensor_columns(3) == tensor_columns([]) == tensor_columns(torch.float32) == {}
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert tensor_columns(nested) == {"dtype": "float32", "device": "cpu"}
    assert symbolic_sizes(nested) is None
    assert sizes(tensor) == {"numel": 6, "size_bytes": 12}
    assert sizes(torch.tensor(1.0)) == {"numel": 1, "size_bytes": 4}
    assert sizes(nested) == sizes(None) == {"numel": None, "size_bytes": None}
    assert symbolic_sizes(tensor) is symbolic_sizes(3) is None


def test_sizes_that_are_symbols_are_not_known() -> None:
    first_is_unknown = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    mode = FakeTensorMode(shape_env=ShapeEnv())
    tensor = mode.from_tensor(torch.zeros(7, 3), symbolic_context=first_is_unknown)
    assert tensor_columns(tensor)["shape"] == [None, 3]
    assert symbolic_sizes(tensor) == [str(tensor.shape[0]), "3"]
    assert sizes(tensor) == {"numel": None, "size_bytes": None}


def test_arguments_have_the_names_of_the_schema() -> None:
    x, node = called(torch.ops.aten.add.Tensor, 2, alpha=3)
    assert list(named_arguments(node)) == [("self", x), ("other", 2), ("alpha", 3)]
    x, node = called(torch.add, 2, alpha=3)
    assert list(named_arguments(node)) == [(None, x), (None, 2), ("alpha", 3)]
    assert nodes_in([1, (x, {"a": node})]) == [x, node]


def test_what_an_op_overwrites_and_where_it_comes_back() -> None:
    x, node = called(torch.ops.aten.add_.Tensor, 1)
    assert written(node) == [(x, 0)]
    assert written(called(torch.ops.aten.add.Tensor, 1)[1]) == written(called(torch.add, 1)[1]) == []
    graph = Graph()
    x, out = graph.placeholder("x"), graph.placeholder("out")
    assert written(graph.call_function(torch.ops.aten.add.out, (x, 1), {"out": out})) == [(out, 0)]
    several = graph.call_function(torch.ops.aten._foreach_add_.Scalar, ([x, out], 1))
    assert written(several) == [(x, None), (out, None)]


def test_arguments_are_json_data() -> None:
    x, _ = called(torch.relu)
    assert plain([x, (1, None), {2: torch.float16}]) == ["%x", [1, None], {"2": "float16"}]
    assert plain(True) is True
    assert plain("a") == "a"
    assert plain(torch.device("cpu")) == "cpu"


HOOK = "_empty_nn_module_stack_from_metadata_hook"
STACKS = [
    ({"a": ("", nn.Linear)}, [("", "Linear", "")]),
    (
        {"a": ("L['self']", nn.Linear), "b@1": ("L['self'].layers[0]", "x.y.Block")},
        [("", "Linear", ""), ("layers.0", "Block", "1")],
    ),
    ({"b": ("L['self']._modules['layers']._modules['0']", "Block")}, [("layers.0", "Block", "")]),
    ({"b": ("fc@2", nn.Linear), HOOK: ("", "None")}, [("fc", "Linear", "2")]),
]


@pytest.mark.parametrize(("stack", "expected"), STACKS)
def test_modules_around_a_node(stack: dict[str, Any], expected: list[Any]) -> None:
    x, _ = called(torch.relu)
    x.meta["nn_module_stack"] = stack
    assert module_stack(x) == expected
    x.meta = {"fwd_nn_module_stack": stack}
    assert module_stack(x) == expected


def test_a_node_is_of_the_innermost_line_outside_of_torch() -> None:
    x, _ = called(torch.relu)
    assert (source_line(x), phase(x)) == (None, None)
    inside = f'  File "{torch.__file__}", line 3, in f\n  File "torch/x.py", line 4, in g'
    x.meta["stack_trace"] = f'  File "/m/a.py", line 1, in f\n    a\n  File "/m/b.py", line 22, in g\n{inside}'
    assert (source_line(x) or "").endswith("b.py:22")
    x.meta["partitioner_tag"] = "must_be_in_backward"
    assert phase(x) == "backward"
