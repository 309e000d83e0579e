"""An LSTM layer in one direction, as formulas: oneDNN's ops for it have no float64 kernel, and share private memory.

Its backward op reads a workspace that only the forward kernel of the same dtype can have filled: in another dtype it
reads and writes beyond it. The formulas are those of torch.nn.LSTM's documentation, gates in the order i, f, g, o.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

Arguments = dict[str, Any]
LSTM = 2  # `mode` of an LSTM among torch's recurrent layers


class _Steps(NamedTuple):
    """What each time step has computed, in the order in which the layer goes through them."""

    times: list[int]
    gates: list[tuple[Tensor, ...]]  # i, f, g and o: (B, H)
    hidden: list[Tensor]  # before each step, and after the last
    cells: list[Tensor]


def layer(arguments: Arguments) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (T, B, H), and the hidden state and cell after the last step (B, H)."""
    weights = [arguments[f"weight{number}"] for number in range(4)]
    steps = _steps(arguments, weights, arguments["cx_"])
    outputs = steps.hidden[:0:-1] if arguments["reverse"] else steps.hidden[1:]
    like = arguments["hx_"].shape
    return torch.stack(outputs), steps.hidden[-1].reshape(like), steps.cells[-1].reshape(like)


def layer_backward(arguments: Arguments) -> tuple[Tensor, ...]:
    """Gradients of the input, of both weights and both biases, of the first hidden state and the first cell."""
    weights = [arguments[f"weight{number}"] for number in range(1, 5)]
    inputs, (of_inputs, of_hiddens) = arguments["input"], weights[:2]
    steps = _steps(arguments, weights, arguments["cx_tmp"])
    outer = arguments["grad_output"]
    to_hidden, to_cell = (
        torch.zeros_like(steps.cells[0]) if arguments[name] is None else arguments[name].reshape(steps.cells[0].shape)
        for name in ("grad_hy", "grad_cy")
    )
    to_inputs, to_gates = torch.zeros_like(inputs), []
    for number in reversed(range(len(steps.times))):
        time = steps.times[number]
        if outer is not None:
            to_hidden = to_hidden + outer[time]
        i, f, g, o = steps.gates[number]
        cell = steps.cells[number + 1].tanh()
        to_cell = to_cell + to_hidden * o * (1 - cell * cell)
        through = (
            to_cell * g * i * (1 - i),
            to_cell * steps.cells[number] * f * (1 - f),
            to_cell * i * (1 - g * g),
            to_hidden * cell * o * (1 - o),
        )
        to_gates.append(torch.cat(through, 1))
        to_inputs[time] = to_gates[-1] @ of_inputs
        to_hidden, to_cell = to_gates[-1] @ of_hiddens, to_cell * f
    gates = torch.cat(to_gates)
    seen = torch.cat([inputs[time] for time in reversed(steps.times)]), torch.cat(steps.hidden[-2::-1])
    bias = gates.sum(0)
    shape = arguments["hx_"].shape
    return (
        to_inputs,
        gates.mT @ seen[0],
        gates.mT @ seen[1],
        bias,
        bias,
        to_hidden.reshape(shape),
        to_cell.reshape(shape),
    )


def _steps(arguments: Arguments, weights: list[Tensor], cell: Tensor) -> _Steps:
    if arguments["mode"] != LSTM:
        raise NotImplementedError(f"oneDNN's recurrent layer of mode {arguments['mode']} has no formula here")
    of_inputs, of_hiddens, *biases = weights
    inputs = arguments["input"]
    batch, size = inputs.shape[1], arguments["hidden_size"]
    times = list(range(len(inputs)))
    steps = _Steps(times[::-1] if arguments["reverse"] else times, [], [], [])
    steps.hidden.append(arguments["hx_"].reshape(batch, size))
    steps.cells.append(cell.reshape(batch, size))
    for time in steps.times:
        sums = inputs[time] @ of_inputs.mT + steps.hidden[-1] @ of_hiddens.mT
        i, f, g, o = (sums + sum(biases) if arguments["has_biases"] else sums).chunk(4, 1)
        gates = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        steps.gates.append(gates)
        steps.cells.append(gates[1] * steps.cells[-1] + gates[0] * gates[2])
        steps.hidden.append(gates[3] * steps.cells[-1].tanh())
    return steps


FORMULAS = {"mkldnn_rnn_layer": layer, "mkldnn_rnn_layer_backward": layer_backward}
