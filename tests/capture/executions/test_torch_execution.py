"""torch_execution: what a model computed, by name, module and source; and that the model is left as it was."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from nbkit.capture.executions.torch_execution import torch_execution
from nbkit.errors import OptionError
from sample_models.llama import LLAMA_TINY, Llama
from tests.capture.executions.helper import one, output, runs_again, runs_from_inputs, value


class Normalized(nn.Module):
    """Writes in place, counts batches and drops out."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.relu = nn.ReLU(inplace=True)
        self.dropout = nn.Dropout(0.5)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        made: Tensor = self.dropout(self.relu(self.norm(self.first(x))))
        return made


def test_a_llama_gives_its_logits_and_runs_again() -> None:
    model, ids = Llama(LLAMA_TINY), torch.randint(0, 96, (2, 8))
    execution = torch_execution(model, (ids,))
    assert torch.equal(output(execution), model(ids))
    last = execution.results[execution.outputs["[0]"]]
    assert (last.op, last.module, last.phase) == ("aten._unsafe_view.default", "lm_head", "forward")
    assert last.source is not None and "llama.py:" in last.source
    assert one(execution, "model.layers.1.mlp.up_proj.weight").kind == "parameter"
    assert one(execution, "ids").kind == "input"
    runs_again(execution)
    runs_from_inputs(execution)


def test_gradients_are_those_of_torch() -> None:
    model, ids = Llama(LLAMA_TINY), torch.randint(0, 96, (2, 8))
    execution = torch_execution(model, (ids,), {"targets": ids}, backward=True)
    model(ids, ids).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(output(execution, f"grad of {name}"), parameter.grad)
    assert one(execution, "grad of lm_head.weight").phase == "backward"
    runs_again(execution)
    runs_from_inputs(execution)


def test_the_model_is_left_as_it_was() -> None:
    model, x = Normalized(), torch.randn(5, 4, requires_grad=True)
    model(x).sum().backward()
    assert model.first.weight.grad is not None
    kept = {name: (tensor, tensor.clone()) for name, tensor in model.state_dict(keep_vars=True).items()}
    gradient, before = model.first.weight.grad, model.first.weight.grad.clone()
    random = torch.get_rng_state()
    torch_execution(model, (x,), backward=True)
    for name, tensor in model.state_dict(keep_vars=True).items():
        assert tensor is kept[name][0] and torch.equal(tensor, kept[name][1])
    assert model.first.weight.grad is gradient and torch.equal(gradient, before)
    assert model.training and model.calls == 1 and torch.equal(torch.get_rng_state(), random)


def test_a_model_that_a_closure_calls_is_left_as_it_was() -> None:
    model, x = Normalized(), torch.randn(5, 4)
    model(x)
    torch_execution(lambda x: model(x), (x,))
    assert model.calls == 1


@pytest.mark.parametrize("has_gradient", [False, True])
def test_a_backward_pass_of_the_step_itself_leaves_gradients_as_they_were(has_gradient: bool) -> None:
    """Of a tensor that belongs to no model."""
    weight, x = torch.ones(3, requires_grad=True), torch.arange(3.0)
    weight.grad = before = torch.full((3,), 7.0) if has_gradient else None

    def step(x: Tensor) -> Tensor:
        (weight * x).sum().backward()
        assert weight.grad is not None
        return weight.grad * 2

    execution = torch_execution(step, (x,))
    assert output(execution).tolist() == [(7.0 * has_gradient + each) * 2 for each in range(3)]
    assert weight.grad is before and (before is None or before.tolist() == [7.0] * 3)


def test_two_runs_see_the_same_random_numbers_and_batches() -> None:
    model, x = Normalized(), torch.randn(5, 4)
    first, second = torch_execution(model, (x,)), torch_execution(model, (x,))
    assert torch.equal(output(first), output(second)) and bool((output(first) == 0).any())
    assert one(first, "norm.running_mean").kind == "buffer"
    assert value(first, "norm.running_mean").tolist() == [0.0] * 8
    runs_again(first)


def test_a_closure_finds_the_modules_that_it_calls() -> None:
    model, x = nn.Linear(3, 3), torch.ones(2, 3)
    execution = torch_execution(lambda x: {"hidden": (model(x), model(x * 2)), "x": x}, (x,))
    assert list(execution.outputs) == ["hidden[0]", "hidden[1]", "x"]
    assert execution.outputs["x"] == one(execution, "x").result_id
    assert one(execution, "weight").kind == "parameter"
    assert one(execution, "addmm").module == ""


def test_inputs_are_named_by_their_arguments() -> None:
    def step(x: Tensor, masks: Any, **more: Tensor) -> Tensor:
        made: Tensor = x * masks["a"][0] + more["scale"]
        return made

    execution = torch_execution(step, (torch.ones(2), {"a": [torch.ones(2)]}), {"scale": torch.ones(())})
    assert [result.name for result in execution.results[:3]] == ["x", "masks['a'][0]", "scale"]


def test_arguments_without_a_name_are_named_by_their_place() -> None:
    """A function of C tells nobody its arguments."""
    x, scale = torch.ones(2), torch.tensor(3.0)
    execution = torch_execution(torch.addcmul, (x,), {"tensor1": x * 2, "tensor2": scale})
    assert [result.name for result in execution.results] == ["args[0]", "tensor1", "tensor2", "addcmul"]


class Pair(NamedTuple):
    mean: Tensor
    rest: list[Tensor]


@dataclass
class Answer:
    logits: Tensor
    model: nn.Module
    decode: Any


def test_outputs_are_named_by_the_fields_in_which_they_stand() -> None:
    """Tensors that a module or a function of the answer holds are not the answer."""
    model, x = nn.Linear(3, 3), torch.ones(2, 3)
    execution = torch_execution(lambda x: Pair(x.mean(), [x * 2, x * 3]), (x,))
    assert list(execution.outputs) == ["mean", "rest[0]", "rest[1]"]
    execution = torch_execution(lambda x: Answer(model(x), model, lambda: x), (x,))
    assert list(execution.outputs) == ["logits"]
    execution = torch_execution(lambda x: {"pair": Pair(x * 2, []), "both": (Answer(x + 1, model, len),)}, (x,))
    assert list(execution.outputs) == ["pair.mean", "both[0].logits"]


def test_a_replaced_value_changes_what_reads_it_and_nothing_else() -> None:
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        doubled = x * 2
        return (doubled + 1).relu(), x.exp()

    execution = torch_execution(step, (torch.ones(2),))
    doubled, other = one(execution, "mul").result_id, execution.outputs["[1]"]
    assert execution.recompute is not None
    answer = execution.recompute(
        {doubled: torch.tensor([5.0, -9.0]).numpy()}, [execution.outputs["[0]"], other, doubled]
    )
    assert answer[execution.outputs["[0]"]].tolist() == [6.0, 0.0]
    assert answer[doubled].tolist() == [2.0, 2.0]  # from its own sources
    assert torch.equal(torch.from_numpy(answer[other]), torch.ones(2).exp())
    assert execution.value(doubled).tolist() == [2.0, 2.0]  # type: ignore[union-attr]


def test_a_replaced_value_of_another_shape_leaves_out_what_reads_it() -> None:
    execution = torch_execution(lambda x: (x * 2, x + 1), (torch.ones(2),))
    assert execution.recompute is not None
    assert execution.recompute({0: torch.ones(3).numpy()}, [1, 2]) == {}


def test_an_error_midway_ends_the_run_early() -> None:
    execution = torch_execution(nn.Sequential(nn.Linear(4, 8), nn.Linear(4, 8)), (torch.ones(2, 4),))
    assert execution.error is not None
    assert execution.error.startswith("The run ended early at aten.addmm.default in module 1 with RuntimeError: ")
    assert one(execution, "addmm").module == "0" and not execution.outputs
    runs_again(execution)


def test_an_error_before_the_first_op_is_said_without_a_place() -> None:
    execution = torch_execution(lambda x: 1 / 0, (torch.ones(2),))
    assert execution.error == "The run ended early with ZeroDivisionError: division by zero"


def test_values_that_are_not_kept_are_computed_or_missing() -> None:
    model, x = Normalized().eval(), torch.randn(5, 4)
    execution = torch_execution(model, (x,), kept_bytes=300)
    assert execution.notes == ("The values of 8 results were not kept: together they are too large.",)
    assert execution.recompute is not None
    wanted = one(execution, "addmm").result_id
    torch.testing.assert_close(torch.from_numpy(execution.recompute({}, [wanted])[wanted]), model.first(x))


def test_bfloat16_comes_as_float32() -> None:
    model, x = nn.Linear(4, 4).bfloat16(), torch.randn(2, 4).bfloat16()
    execution = torch_execution(model, (x,))
    assert execution.results[execution.outputs["[0]"]].dtype == "bfloat16"
    assert torch.equal(output(execution), model(x).float())
    runs_again(execution)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_halves_of_complex_numbers_come_as_complex64() -> None:
    execution = torch_execution(lambda x: x.to(torch.complex32), (torch.tensor([1 + 2j, 3 - 0.5j]),))
    assert execution.results[-1].dtype == "complex32" and not execution.notes
    assert output(execution).dtype is torch.complex64 and output(execution).tolist() == [1 + 2j, 3 - 0.5j]


def test_a_call_whose_result_numpy_cannot_hold_is_counted() -> None:
    execution = torch_execution(lambda x: (x.view(torch.bits8), x + 1)[1], (torch.ones(2, dtype=torch.uint8),))
    (note,) = execution.notes
    assert "calls of ops were not recorded (TypeError: " in note and "Bits8" in note
    assert output(execution).tolist() == [2, 2]


def test_what_cannot_be_called_is_said() -> None:
    with pytest.raises(OptionError, match="A int cannot be run; give a module, a function or an exported program"):
        torch_execution(3, ())
    with pytest.raises(OptionError, match="args is a Tensor; give a tuple of the arguments"):
        torch_execution(nn.Linear(1, 1), torch.ones(1))  # type: ignore[arg-type]


def test_without_a_gradient_a_note_says_so() -> None:
    execution = torch_execution(lambda x: x * 2, (torch.ones(2),), backward=True)
    assert execution.notes == ("Nothing was backpropagated: no output requires a gradient.",)


def test_a_llama_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=64, **sizes)).eval()
    ids = torch.randint(0, 64, (1, 6))
    execution = torch_execution(model, (), {"input_ids": ids})
    assert execution.error is None and not execution.notes
    torch.testing.assert_close(output(execution, "logits"), model(ids).logits)
    assert sum(".layers[" in name for name in execution.outputs) == 4  # keys and values of each layer
    runs_again(execution)
    runs_from_inputs(execution)


def test_a_sparse_matrix_is_read_as_it_is() -> None:
    class Aggregates(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("adjacency", torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse())

        def forward(self, x: Tensor) -> Tensor:
            return torch.sparse.mm(self.adjacency * 2, x).relu()

    model, x = Aggregates(), torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    execution = torch_execution(model, (x,))
    assert output(execution).tolist() == [[6.0, 8.0], [4.0, 0.0]]
    by_op = {result.op: result for result in execution.results}
    assert by_op["aten.mul.Tensor"].result_id in by_op["aten._sparse_addmm.default"].sources


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_an_op_that_writes_to_a_sparse_result_runs_again() -> None:
    def step(x: Tensor) -> Tensor:
        made, sparse = torch.sparse_coo_tensor(size=(2, 2)), x.to_sparse()
        torch.add(sparse, sparse, out=made)
        return torch.sparse.mm(made, x)

    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    execution = torch_execution(step, (x,))
    assert torch.equal(output(execution), 2 * x @ x) and not execution.notes
    assert execution.recompute is not None
    written = one(execution, "add").result_id
    assert execution.recompute({}, [written])[written].tolist() == (2 * x).tolist()


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_what_runs_below_the_recorder_is_a_constant_of_what_follows() -> None:
    q = torch.randn(1, 1, 16, 8)
    execution = torch_execution(lambda q: flex_attention(q, q, q) + 1, (q,))
    assert execution.error is None and torch.equal(output(execution), flex_attention(q, q, q) + 1)
    added = execution.results[execution.outputs["[0]"]]
    assert [execution.results[source].kind for source in added.sources] == ["constant"]


def test_sparse_results_run_again_alone_and_all_at_once() -> None:
    def step(x: Tensor) -> Tensor:
        one, other = x.to_sparse(), (x * 2).to_sparse_csr()
        return torch.sparse.mm(one, x.t()) + torch.sparse.mm(other, x.t())

    execution = torch_execution(step, (torch.randn(3, 4),))
    runs_again(execution)
    runs_from_inputs(execution)
    assert execution.recompute is not None
    for result in execution.results:
        (found,) = execution.recompute({}, [result.result_id]).values()
        np.testing.assert_allclose(found, execution.value(result.result_id), rtol=1e-5, atol=1e-6)


class Draws(nn.Module):
    """Draws from a generator of numpy of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.draws = np.random.default_rng(3)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.draws.random()


def test_generators_of_numpy_that_a_module_has_are_put_back() -> None:
    model = Draws()
    execution = torch_execution(model, (torch.ones(2),))
    assert not execution.notes and not execution.returned
    assert model.draws.random() == np.random.default_rng(3).random()


def test_what_reads_an_expanded_tensor_can_read_other_values_in_each_place() -> None:
    x = torch.arange(3.0)
    execution = torch_execution(lambda x: x.expand(2, 3).neg(), (x,))
    assert execution.recompute is not None
    wide, negated = (
        next(number for number, one in enumerate(execution.results) if one.name == name) for name in ("expand", "neg")
    )
    values = torch.tensor([[1.0, torch.nan, 3.0], [4.0, torch.nan, 6.0]])
    torch.testing.assert_close(
        torch.from_numpy(execution.recompute({wide: values.numpy()}, [negated])[negated]), -values, equal_nan=True
    )
