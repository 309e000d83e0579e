"""Graphs run node by node: exported programs, graph modules, and what torch.compile is given."""

import pytest
import torch
from torch import Tensor, nn

from nbkit.capture.executions.export import exported
from nbkit.capture.executions.names import returning_tensors
from nbkit.capture.executions.observer import NOT_COMPILED
from nbkit.capture.executions.torch_execution import torch_execution
from nbkit.compat.torch_versions import HIDES_BACKWARD
from nbkit.errors import OptionError
from sample_models.llama import LLAMA_TINY, Llama
from tests.capture.executions.helper import one, output, runs_again, runs_from_inputs

COMPILES = pytest.mark.skipif(HIDES_BACKWARD, reason="torch 2.8 and older do not compile while a recording looks on")


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))


class Split(nn.Module):
    def forward(self, x: Tensor) -> dict[str, Tensor]:
        first, second = x.split(2, dim=1)
        return {"sum": first + second, "first": first}


def test_results_of_a_program_have_the_names_of_its_nodes() -> None:
    model, ids = Llama(LLAMA_TINY), torch.randint(0, 96, (2, 8))
    program = torch.export.export(model, (ids,))
    execution = torch_execution(program, (ids,))
    torch.testing.assert_close(output(execution), model(ids))
    names = {result.name for result in execution.results}
    ops = {n.name for n in program.graph.nodes if n.op == "call_function" and "getitem" not in n.name}
    assert {name for name in ops if not name.startswith(("split", "chunk", "_assert"))} <= names
    linear = one(execution, "linear")
    assert (linear.op, linear.module, linear.phase) == (
        "aten.linear.default",
        "model.layers.0.self_attn.q_proj",
        "forward",
    )
    assert [execution.results[source].name for source in linear.sources][1] == linear.module + ".weight"
    assert linear.source is not None and "llama.py:" in linear.source
    runs_again(execution)
    runs_from_inputs(execution)


def test_the_results_of_one_op_are_named_by_what_picks_them() -> None:
    x = torch.randn(2, 4)
    execution = torch_execution(torch.export.export(Split(), (x,)), (x,))
    first, second = one(execution, "getitem"), one(execution, "getitem_1")
    assert (first.call, first.position, second.position) == (second.call, 0, 1)
    assert execution.outputs == {"sum": one(execution, "add").result_id, "first": first.result_id}
    assert [result.name for result in execution.results] == ["x", "getitem", "getitem_1", "add"]


def test_a_norm_of_a_program_writes_its_statistics() -> None:
    model, x = nn.BatchNorm1d(3), torch.randn(4, 3)
    execution = torch_execution(torch.export.export(model, (x,)), (x,))
    made = [result for result in execution.results if result.op == "aten.batch_norm.default"]
    expected = model(x), model.running_mean, model.running_var
    assert [result.shape for result in made] == [(4, 3), (3,), (3,)]
    for result, tensor in zip(made, expected, strict=True):
        torch.testing.assert_close(torch.tensor(execution.value(result.result_id)), tensor)
    runs_again(execution)


def test_a_program_has_gradients() -> None:
    model, x = mlp(), torch.randn(3, 4)
    execution = torch_execution(torch.export.export(model, (x,)), (x,), backward=True)
    model(x).mean().backward()
    torch.testing.assert_close(output(execution, "grad of 0.weight"), model[0].weight.grad)
    assert one(execution, "linear").op == "aten.addmm.default"


def test_a_program_that_fails_is_there_up_to_its_node() -> None:
    program = torch.export.export(Split(), (torch.ones(2, 4),))
    (node,) = [node for node in program.graph.nodes if node.name == "add"]
    node.target = torch.ops.aten.mm.default
    execution = torch_execution(program, (torch.ones(2, 4, dtype=torch.int64).float()[:, :4],))
    assert execution.error is None
    node.target = torch.ops.aten.bmm.default
    execution = torch_execution(program, (torch.ones(2, 4),))
    assert execution.error is not None and execution.error.startswith("The run ended early at add with RuntimeError")
    assert [result.name for result in execution.results] == ["x", "getitem", "getitem_1"]


def test_a_graph_module_is_run_by_its_nodes_and_left_as_it_was() -> None:
    model, x = mlp(), torch.randn(3, 4)
    graph = torch.fx.symbolic_trace(model)
    execution = torch_execution(graph, (x,))
    assert "forward" not in vars(graph)
    assert [r.name for r in execution.results if r.kind == "input"] == ["input"]
    assert one(execution, "_2").module == "2"
    torch.testing.assert_close(output(execution), model(x))
    runs_again(execution)


@COMPILES
def test_a_compiled_model_gives_the_ops_of_its_graphs() -> None:
    model, x = mlp(), torch.randn(3, 4)
    execution = torch_execution(torch.compile(model), (x,), backward=True)
    assert execution.error is None and not execution.notes
    torch.testing.assert_close(output(execution), model(x))
    model(x).mean().backward()
    torch.testing.assert_close(output(execution, "grad of 2.weight"), model[2].weight.grad)
    relu = one(execution, "graph 0/relu")
    assert (relu.op, relu.module, relu.phase) == ("aten.relu.default", "1", "forward")
    assert one(execution, "graph 0 backward/mm").phase == "backward"
    runs_again(execution)
    runs_from_inputs(execution)


class Broken(nn.Module):
    """Is compiled in two graphs."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        torch._dynamo.graph_break()
        return y.relu()


@COMPILES
def test_a_model_that_compiles_itself_gives_the_ops_of_its_graphs_and_stays_so() -> None:
    model, x, compiled = Broken(), torch.randn(3, 4), []
    model.compile(backend=lambda graph, inputs: compiled.append(graph) or graph.forward)
    own = model._compiled_call_impl
    execution = torch_execution(model, (x,))
    assert [r.name for r in execution.results if r.op] == ["graph 0/mul", "graph 1/relu"]
    assert len(compiled) == 2  # by the call without a recorder
    assert model._compiled_call_impl is own
    torch.testing.assert_close(output(execution), model(x))


@COMPILES
def test_between_the_graphs_of_a_compiled_function_ops_are_eager() -> None:
    def step(x: Tensor) -> Tensor:
        y = x * 2
        torch._dynamo.graph_break()
        return y.exp() + 1

    execution = torch_execution(torch.compile(step), (torch.ones(2),))
    assert [r.name for r in execution.results] == ["x", "graph 0/mul", "graph 1/exp", "graph 1/add"]
    assert [r.sources for r in execution.results] == [(), (0,), (1,), (2,)]


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_model_that_is_exported_keeps_its_forward(is_replaced: bool) -> None:
    model = mlp()
    if is_replaced:
        model.forward = own = lambda x: x * 2  # type: ignore[method-assign]
    with pytest.raises(KeyError), returning_tensors(model):
        assert set(model(torch.ones(1, 4))) == {"[0]"}
        raise KeyError
    assert vars(model)["forward"] is own if is_replaced else "forward" not in vars(model)


def test_where_nothing_is_compiled_the_ops_are_eager_and_that_is_said() -> None:
    def step(x: Tensor) -> Tensor:  # of the test alone: torch compiles nothing of this code in this process any more
        return x.relu() + 1

    with torch._dynamo.config.patch(disable=True):
        execution = torch_execution(torch.compile(step), (torch.randn(3, 4),))
    assert execution.error is None and [result.name for result in execution.results] == ["x", "relu", "add"]
    assert execution.notes == (NOT_COMPILED,)


def test_a_compiled_part_of_a_model_runs_op_by_op() -> None:
    part = torch.compile(lambda x: x * 2 + 1)
    execution = torch_execution(lambda x: part(x).relu(), (torch.ones(2),))
    assert [r.op for r in execution.results[1:]] == ["aten.mul.Tensor", "aten.add.Tensor", "aten.relu.default"]


def test_a_module_that_cannot_be_exported_is_refused_with_torchs_reason() -> None:
    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(OptionError, match=r"^Asks cannot be exported by torch\.export: .*[Dd]ata-dependent"):
        exported(Asks(), (torch.ones(2),), {})


def test_the_branch_that_a_program_takes_runs_node_by_node() -> None:
    class Branches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = torch.cond(x.sum() > 0, lambda t: t.sin() + 1, lambda t: t.cos(), (x,))
            return made * 2

    x = torch.tensor([1.0, 2.0])
    execution = torch_execution(torch.export.export(Branches(), (x,)), (x,))
    torch.testing.assert_close(output(execution), 2 * (x.sin() + 1))
    assert {"aten.sin.default", "aten.add.Tensor"} <= {result.op for result in execution.results}
