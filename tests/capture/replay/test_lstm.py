"""The formulas of an LSTM layer give what torch's own float64 layer and autograd give, for every form of it."""

import pytest
import torch

from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import NoKernelError, Reference

aten = torch.ops.aten
LSTM = 2


def wanted(inputs, weights, state, reverse, has_biases):
    """Outputs, last state, and gradients for random ones that come in, by torch.lstm in float64."""
    leaves = [tensor.double().requires_grad_() for tensor in (inputs, *weights, *state)]
    x, *parameters, hidden, cell = leaves
    if not has_biases:
        parameters = parameters[:2]
    flipped = x.flip(0) if reverse else x
    start = hidden[None], cell[None]
    outputs, *last = torch.lstm(flipped, start, parameters, has_biases, 1, 0.0, False, False, False)
    outputs = outputs.flip(0) if reverse else outputs
    results = [outputs, *(state[0] for state in last)]
    incoming = [torch.randn(result.shape).double() for result in results]
    gradients = torch.autograd.grad(results, [x, *parameters, hidden, cell], incoming)
    return [result.detach() for result in results], incoming, gradients


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("has_biases", [False, True])
def test_an_lstm_layer(reverse, has_biases):
    inputs, state = torch.randn(6, 2, 3), (torch.randn(2, 5), torch.randn(2, 5))
    weights = torch.randn(20, 3), torch.randn(20, 5), torch.randn(20), torch.randn(20)
    results, incoming, gradients = wanted(inputs, weights, state, reverse, has_biases)
    given = weights if has_biases else (*weights[:2], *weights[:2])  # as torch does
    rest = LSTM, 5, 1, has_biases
    reference = Reference("cpu:float64")

    forward = inputs, *given, *state, reverse, [], *rest, False, False, True
    found = reference.copy(traits_of(aten.mkldnn_rnn_layer.default), forward, {}).results((forward, {})).all
    torch.testing.assert_close(found, results, rtol=1e-12, atol=1e-12)

    workspace = torch.zeros(7, dtype=torch.uint8)
    made = [tensor.float() for tensor in (*results, *incoming)]
    backward = inputs, *given, *state, *made, reverse, *rest, True, False, [], False, workspace
    call = reference.copy(traits_of(aten.mkldnn_rnn_layer_backward.default), backward, {})
    found = call.results((backward, {})).all
    if not has_biases:
        del found[3:5]
    torch.testing.assert_close(found, list(gradients), rtol=1e-5, atol=1e-5)


def test_without_gradients_of_the_last_state():
    inputs, state, outputs = torch.randn(4, 2, 3), torch.randn(2, 5), torch.randn(4, 2, 5)
    weights = torch.randn(20, 3), torch.randn(20, 5), torch.randn(20), torch.randn(20)
    incoming = torch.randn(4, 2, 5), None, None
    options = False, LSTM, 5, 1, True, True, False, [], False, torch.zeros(7, dtype=torch.uint8)
    args = inputs, *weights, state, state, outputs, state, state, *incoming, *options
    call = Reference("cpu:float64").copy(traits_of(aten.mkldnn_rnn_layer_backward.default), args, {})
    zeros = torch.zeros(2, 5)
    with_zeros = *args[:11], zeros, zeros, *args[13:]
    other = Reference("cpu:float64").copy(traits_of(aten.mkldnn_rnn_layer_backward.default), with_zeros, {})
    torch.testing.assert_close(call.results().all, other.results().all, rtol=0, atol=0)


def test_a_workspace_is_not_read_by_another_kernel():
    """oneDNN's kernel of another dtype ends the process."""
    tensors = [torch.randn(2, 5) for _ in range(4)]
    op = aten._thnn_fused_lstm_cell_backward_impl.default
    args = (*tensors, torch.randn(2, 20), True)
    with pytest.raises(NoKernelError, match="workspace that belongs to the kernel which filled it"):
        Reference("cpu:float64").copy(traits_of(op), args, {}).results((args, {}))
