"""Tests ops that torch takes apart: recurrent cells and attention give what they give on the CPU."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn


def both(compute):
    """Returns results of `compute(device)` on the CPU and on the simulated device, drawn from the same seed."""
    results = []
    for device in ("cpu", "sim"):
        torch.manual_seed(1)
        results.append([tensor.detach().cpu() for tensor in compute(device)])
    return zip(*results, strict=True)


def attended(device, **options):
    q = torch.randn(2, 4, 5, 8).to(device).requires_grad_()
    k = torch.randn(2, 2 if options.get("enable_gqa") else 4, 5, 8).to(device)
    mask = options.pop("mask", None)
    y = F.scaled_dot_product_attention(q, k, k + 1, attn_mask=None if mask is None else mask.to(device), **options)
    y.sum().backward()
    return y, q.grad


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True, "enable_gqa": True},
        {"mask": torch.ones(5, 5, dtype=torch.bool).tril()},
        {"mask": torch.randn(5, 5)},
        {"dropout_p": 0.5},
        {"scale": 0.1},
    ],
    ids=lambda options: "-".join(options),
)
def test_attention_is_that_of_the_cpu(options):
    assert all(torch.equal(actual, expected) for expected, actual in both(lambda d: attended(d, **dict(options))))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_gru_is_that_of_the_cpu(bidirectional, bias):
    def run(device):
        gru = nn.GRU(3, 4, 2, bias=bias, batch_first=True, dropout=0.3, bidirectional=bidirectional).to(device)
        y, state = gru(torch.randn(5, 2, 3).to(device))
        (y.sum() + state.sum()).backward()
        return y, state, *(parameter.grad for parameter in gru.parameters())

    pairs = list(both(run))
    assert all(torch.equal(actual, expected) for expected, actual in pairs)
    assert pairs[0][0].stride() == pairs[0][1].stride()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences_are_close_to_those_of_the_cpu(kind):
    def run(device):
        layer = kind(3, 4, bidirectional=True).to(device)
        packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 3).to(device), torch.tensor([5, 3]))
        y, lengths = nn.utils.rnn.pad_packed_sequence(layer(packed)[0])
        y.sum().backward()
        return y, lengths, layer.weight_ih_l0.grad

    for expected, actual in both(run):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells_are_close_to_those_of_the_cpu(kind):
    for expected, actual in both(lambda d: [torch.stack(list(kind(3, 4).to(d)(torch.ones(2, 3).to(d))))]):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_dropout_is_that_of_the_cpu(p):
    ((expected, actual),) = both(lambda d: [F.dropout(torch.randn(40).to(d, torch.bfloat16), p)])
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("function", [F.silu, F.mish])
def test_ops_with_a_gradient_kernel_on_the_cpu_use_it(device, function):
    x = torch.randn(4, device="sim", requires_grad=True)
    with device.planted() as planted:
        function(x).sum().backward()
    assert f"aten.{function.__name__}_backward.default" in planted.seen
