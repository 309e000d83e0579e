"""A device that is not there is counted as if it were: what is computed, saved and held is what the CPU has."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorDeviceMismatchError
from torch.nn import functional

import nbkit
from sample_models.llama import LLAMA_TINY, Llama
from sample_models.vit import VIT_TINY, ViT

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
MODELS = {
    "vit": lambda: (ViT(VIT_TINY), torch.randn(2, 3, 32, 32)),
    "llama": lambda: (Llama(LLAMA_TINY), torch.zeros(2, 8, dtype=torch.long)),
    "encoder": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2), torch.randn(4, 2, 16)),
    "batch norm": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), torch.randn(2, 3, 8, 8)),
}


def step(model, x, device):
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9, foreach=True)
    out = model(x.to(device)).flatten(0, -2)
    functional.cross_entropy(out, torch.zeros(len(out), dtype=torch.long, device=device)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "encoder"])
def test_a_model_that_is_moved_costs_what_it_costs_here(name):
    model, x = MODELS[name]()
    here = nbkit.opcost().run(lambda: step(model, x, "cpu"))
    there = nbkit.opcost().run(lambda: step(model, x, "cuda"))
    assert there.costs["flops"].sum() == here.costs["flops"].sum() > 0
    assert there.saved["new_bytes"].sum() == here.saved["new_bytes"].sum() > 0
    held = there.storages.groupby("device")["size_bytes"].sum()
    real = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers(), x))
    assert held["cpu"] == real
    assert all(type(each) is nn.Parameter and each.device.type == "cpu" for each in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_made_inside_is_moved_with_all_it_holds(name):
    make = MODELS[name]

    def moved():
        model, x = make()
        model.cuda()(x.cuda()).sum().backward()
        assert {str(held.device) for each in model.parameters() for held in (each, each.grad)} == {"cuda:0"}
        assert {str(each.device) for each in model.buffers()} <= {"cuda:0"}

    assert "cuda:0" in set(nbkit.opcost().run(moved).storages["device"])


def test_tensors_are_made_and_moved_as_where_cuda_is():
    with nbkit.opcost():
        made = torch.ones(2, device="cuda")
        assert made.is_cuda and made.to("cuda") is made and made.cuda() is made and made.to("cuda:0") is made
        other = made.cuda(1)
        assert str(other.device) == "cuda:1" and str(other.to(made.device).device) == "cuda:0"
        assert not made.cpu().is_cuda and made.half().is_cuda and made.to("cpu", torch.half).dtype == torch.half
        assert made.to(device="cuda", dtype=torch.half).is_cuda and torch.empty(2, device="cuda").normal_().is_cuda
        with torch.device("cuda"):
            assert nn.Linear(2, 2).weight.is_cuda
    assert "is_cuda" not in vars(FakeTensor)


def test_gradients_are_where_their_tensors_are():
    with nbkit.opcost():
        here = torch.ones(2, requires_grad=True)
        there = torch.ones(2, device="cuda", requires_grad=True)
        (here.cuda() * there.cpu().cuda(1).cuda(0)).sum().backward()
        assert (here.grad.is_cuda, there.grad.is_cuda) == (False, True)


def test_values_that_are_asked_for_are_computed_here():
    with nbkit.opcost():
        mask = torch.tensor([True, False, True, True]).cuda()
        assert torch.zeros(4, device="cuda")[mask].shape == (3,)
        assert mask.sum().item() == 3


@pytest.mark.parametrize("kwargs", [{}, {"is_causal": True}, {"dropout_p": 0.1}])
def test_attention_is_one_op_unless_it_is_told_otherwise(kwargs):
    def attention():
        x = torch.zeros(2, 4, 64, 16, device="cuda", requires_grad=True)
        functional.scaled_dot_product_attention(x, x, x, **kwargs).sum().backward()

    row = "torch.nn.functional.scaled_dot_product_attention"
    trace = nbkit.opcost().run(attention)
    assert trace.saved["new_bytes"].sum() == 2 * 4 * 64 * (16 + 16 + 1) * 4  # the input, the result, and sums by row
    assert list(trace.ops["op"]).count(row) == 1
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        apart = nbkit.opcost().run(attention)
    assert apart.saved["new_bytes"].sum() > 2 * 4 * 64 * 64 * 4  # the scores, too


def test_the_simulated_device_is_counted_where_it_is_moved_to_inside():
    device = nbkit.SimulatedDevice().torch_device
    model = nn.Linear(4, 4)
    trace = nbkit.opcost().run(lambda: model.to(device)(torch.ones(2, 4).to(device)).sum().backward())
    assert trace.costs["flops"].sum() == 2 * 2 * 4 * 4 * 2
    assert model.weight.device.type == "cpu"


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def test_what_a_move_changes_here_and_nowhere_else_is_noted():
    tied, x = Tied(), torch.ones(2, 4)
    assert any("shares weights" in note for note in nbkit.opcost().run(lambda: tied.cuda()(x.cuda())).meta["notes"])
    assert nbkit.opcost().run(lambda: tied(x)).meta["notes"] == []
    assert nbkit.opcost().run(lambda: nn.Linear(4, 4).cuda()(x.cuda())).meta["notes"] == []

    def made_inside():
        made = Tied().cuda()
        optimizer = torch.optim.SGD(made.parameters())
        made(x.cuda()).sum().backward()
        optimizer.step()

    assert nbkit.opcost().run(made_inside).meta["notes"] == []
    model = nn.Linear(4, 4)
    early = torch.optim.SGD(model.parameters())

    def stepping():
        model.cuda()(x.cuda()).sum().backward()
        early.step()

    assert any("optimizer was made before" in note for note in nbkit.opcost().run(stepping).meta["notes"])


def test_two_devices_in_one_op_and_names_of_none_are_torchs_errors():
    with pytest.raises(FakeTensorDeviceMismatchError, match="at least two devices"), nbkit.opcost():
        nn.Linear(4, 4).cuda()(torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="device string: nowhere"), nbkit.opcost():
        torch.ones(2).to("nowhere")
    with pytest.raises(RuntimeError, match="must be cuda device"), nbkit.opcost():
        torch.ones(2).cuda("cpu")
