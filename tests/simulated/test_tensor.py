"""Tensors of the simulated device behave like those of a real one."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn


@pytest.fixture
def x():
    return torch.arange(6.0).view(2, 3).to("sim")


def test_moving_there_and_back_keeps_the_values(x):
    assert str(x.device) == "sim:0"
    assert x.cpu().device.type == "cpu"
    assert x.cpu().tolist() == x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.to("sim") is x
    assert x.to("cpu", torch.int64).dtype == torch.int64
    assert x.is_sim


def test_a_copy_to_the_cpu_shares_no_memory(x):
    x.cpu().fill_(7.0)
    assert x.sum().item() == 15.0


def test_views_share_memory(x):
    view = x.view(-1)
    view[0] = 5
    assert x.tolist()[0] == [5.0, 1.0, 2.0]
    assert view._base is x
    assert view.untyped_storage() is x.untyped_storage() is x[1].t().untyped_storage()
    assert x.clone().untyped_storage() is not x.untyped_storage()


def test_an_in_place_op_gives_the_tensor_itself(x):
    assert x.add_(1) is x
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (lambda x: x.t_(), (3, 2)),
        (lambda x: x.unsqueeze_(0), (1, 2, 3)),
        (lambda x: x.resize_(2), (2,)),
        (lambda x: x.resize_(5, 3), (5, 3)),
        (lambda x: x.as_strided_((3,), (2,)), (3,)),
    ],
)
def test_an_op_that_changes_sizes_in_place(x, change, shape):
    assert change(x) is x
    assert tuple(x.shape) == shape == tuple(x.cpu().shape)
    assert x.stride() == x.raw.stride()
    assert (x + 1).shape == x.shape


def test_out_takes_the_result_and_its_size(x):
    out = torch.empty(0, device="sim")
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_named_results(x):
    values, indices = torch.empty(2, device="sim"), torch.empty(2, dtype=torch.long, device="sim")
    assert x.sort(descending=True).values.tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]
    assert x.max(1).indices.device == x.device
    assert torch.max(x, 1, out=(values, indices)).values is values
    assert indices.tolist() == [2, 2]


def test_printing_says_the_device(x):
    assert repr(x[0]) == "tensor([0., 1., 2.], device='sim:0')"
    assert repr(x[0].clone().requires_grad_()) == "tensor([0., 1., 2.], device='sim:0', requires_grad=True)"
    assert "grad_fn=<MulBackward0>" in repr(x.requires_grad_() * 2)
    assert repr(nn.Parameter(x[0].detach())).startswith("Parameter containing:\ntensor([0., 1., 2.], device='sim:0'")
    assert f"{x[1, 1]:.2f}" == "4.00"
    assert f"{x.detach()}" == str(x.detach())


def test_numpy_asks_for_a_copy_first(x):
    with pytest.raises(TypeError, match=r"can't convert sim:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        x.numpy()
    with pytest.raises(TypeError, match="Use Tensor.cpu"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == x.tolist()
    with pytest.raises(BufferError, match="no memory to share"):
        np.from_dlpack(x)


def test_mixed_devices_are_refused_as_torch_does(x):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, .* sim:0 and cpu!"):
        x + torch.ones(2, 3)
    assert (x + torch.tensor(1.0)).tolist()[0] == [1.0, 2.0, 3.0]
    assert x[torch.tensor([1])].tolist() == [[3.0, 4.0, 5.0]]


def test_comparing_with_a_cpu_copy(x):
    assert torch.equal(x, x.cpu().to("sim"))
    assert not torch.equal(x, x + 1)
    with pytest.raises(RuntimeError, match="same device"):
        torch.equal(x, x.cpu())
    torch.testing.assert_close(x, x.clone())


def test_data_can_be_replaced(x):
    x.data = torch.full((4,), 2.0, device="sim")
    assert x.tolist() == [2.0] * 4
    assert x.data.add_(1) is not x
    assert x.tolist() == [3.0] * 4
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.zeros(2)


def test_saved_tensors_open_on_the_cpu_and_views_stay_views(x):
    file = io.BytesIO()
    torch.save({"whole": x, "row": x[1], "leaf": x.clone().requires_grad_()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert {tensor.device.type for tensor in loaded.values()} == {"cpu"}
    assert [tensor.requires_grad for tensor in loaded.values()] == [False, False, True]
    loaded["row"].zero_()
    assert loaded["whole"].tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    assert type(pickle.loads(pickle.dumps(nn.Parameter(x)))) is nn.Parameter


def test_loading_onto_the_device_is_refused(x):
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="load with map_location='cpu', then use load_state_dict"):
        torch.load(file, map_location="sim")


def test_a_deep_copy_stands_alone(x):
    copied = copy.deepcopy(nn.Parameter(x))
    copied.data.zero_()
    assert isinstance(copied, nn.Parameter)
    assert (str(copied.device), x.sum().item()) == ("sim:0", 15.0)


def test_what_the_device_has_not_is_said(x):
    with pytest.raises(RuntimeError, match="There is no sim:1: a process has one simulated device, sim:0"):
        x.to("sim:1")
    with pytest.raises(RuntimeError, match="There is no sim:1"):
        torch.zeros(2, device="sim:1")
    with pytest.raises(NotImplementedError, match="dense tensors only, and this one is torch.sparse_coo"):
        x.to_sparse()


def test_a_tensor_subclass_of_another_package_runs_its_own_ops(x):
    class Wrapping(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*(arg.inner if isinstance(arg, cls) else arg for arg in args), **(kwargs or {}))

    assert (x + Wrapping(x)).tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_a_tensor_can_go_to_another_device(x):
    assert x.to("meta").device.type == "meta"
    assert torch.empty_like(x, device="cpu").device.type == "cpu"
