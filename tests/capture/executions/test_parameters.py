"""What a module holds, and that loading is all or nothing and in place."""

import numpy as np
import pytest
import torch
from torch import nn

from nbkit.capture.executions.parameters import arrays_of, held_tensors, holding, load, module_of


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(4, 2), nn.Linear(2, 4, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)


def test_tied_parameters_are_held_once_and_what_is_not_saved_not_at_all():
    tensors, tied = held_tensors(Tied())
    assert [*tensors] == ["table.weight", "count"]
    assert tied == {"head.weight": "table.weight"}


def test_values_are_loaded_in_place_in_the_dtype_that_is_there():
    model = nn.Linear(2, 1).to(torch.bfloat16)
    weight = model.weight
    load(held_tensors(model)[0], {"weight": np.array([[1.0, 2.0]], np.float32)})
    assert model.weight is weight and weight.dtype is torch.bfloat16 and weight.tolist() == [[1.0, 2.0]]
    assert weight.grad_fn is None and weight.requires_grad


def test_nothing_is_loaded_where_one_does_not_fit():
    tensors, _ = held_tensors(nn.Linear(2, 1))
    before = arrays_of({name: tensor.clone() for name, tensor in tensors.items()})
    with pytest.raises(RuntimeError):
        load(tensors, {"weight": np.zeros((1, 2)), "bias": np.zeros(3)})
    assert all((value == before[name]).all() for name, value in arrays_of(tensors).items())


def test_what_is_held_for_a_while_is_put_back_also_after_an_error():
    tensors, _ = held_tensors(nn.Linear(2, 1))
    before = tensors["weight"].tolist()
    with pytest.raises(KeyError), holding(tensors, {"weight": np.zeros((1, 2))}):
        assert tensors["weight"].tolist() == [[0.0, 0.0]]
        raise KeyError
    assert tensors["weight"].tolist() == before


def test_a_module_is_found_also_where_it_is_compiled():
    model = nn.Linear(2, 1)
    assert module_of(torch.compile(model)) is model and module_of(model) is model
    assert module_of(torch.relu) is None and module_of("a.onnx") is None
