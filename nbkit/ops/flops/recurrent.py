"""Counts the multiply-adds of recurrent layers, as 2 FLOPs each, and the arithmetic of their gates."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from nbkit.ops.flops.counts import Count, elements
from nbkit.ops.flops.products import Formula, Shape, under


def _layer(x: Shape, of_input: Shape, of_state: Shape, *_: Any) -> int:
    """Counts one layer in one direction: x (T, B, in), weights (gates x hidden, in) and (gates x hidden, hidden)."""
    return 2 * prod(x[:-1]) * (prod(of_input) + prod(of_state))


def _layer_backward(x: Shape, of_input: Shape, of_state: Shape, *_: Any) -> int:
    """Counts the gradients of inputs and of weights as much as the layer, each."""
    return 2 * _layer(x, of_input, of_state)


def _layers(x: Shape, weights: Sequence[Shape], *_: Any) -> int:
    """Counts all layers and directions, whose weights are the matrices among `weights`; the rest are biases."""
    return 2 * prod(x[:-1]) * sum(prod(weight) for weight in weights if len(weight) == 2)


def _layers_backward(x: Shape, weights: Sequence[Shape], *others: Any) -> int:
    return _layers(x, weights) * (1 + bool(others[-1][3]))


RECURRENT: dict[str, Formula] = {
    **under(_layer, "mkldnn_rnn_layer"),
    **under(_layer_backward, "mkldnn_rnn_layer_backward"),
    **under(_layers, "_cudnn_rnn miopen_rnn"),
    **under(_layers_backward, "_cudnn_rnn_backward miopen_rnn_backward"),
}


class Cell(NamedTuple):
    """Holds the FLOPs of a cell for each element of its state, matrix products left out.

    `forward` adds the products of input and state, applies the activations and mixes old and new state; `backward` is
    the same of its derivative. Each of the two biases adds one for each gate.
    """

    gates: int
    forward: int
    backward: int


RELU, TANH, LSTM, GRU = Cell(1, 2, 2), Cell(1, 2, 4), Cell(4, 13, 23), Cell(3, 10, 16)
# By torch's number of the mode of a recurrent layer.
_CELLS = (RELU, TANH, LSTM, GRU)


def _layer_gates(args: Sequence[Any], _: Mapping[str, Any], __: Any) -> int:
    cell, hidden, has_biases = _CELLS[args[9]], args[10], args[12]
    return int(prod(args[0].shape[:-1]) * hidden * (cell.forward + 2 * cell.gates * has_biases))


def _layer_gates_backward(args: Sequence[Any], _: Mapping[str, Any], __: Any) -> int:
    cell, hidden, has_biases = _CELLS[args[14]], args[15], args[17]
    return int(prod(args[0].shape[:-1]) * hidden * (cell.backward + cell.gates * has_biases))


def _layers_gates(mode: int, layers: int, directions: int) -> Count:
    """Returns the rule of stacked layers, whose biases are the vectors among their weights."""

    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        cell, rows, has_biases = _CELLS[args[mode]], prod(args[0].shape[:-1]), any(w.dim() == 1 for w in args[1])
        each = cell.backward + cell.gates * has_biases if mode == 10 else cell.forward + 2 * cell.gates * has_biases
        return int(rows * args[mode + 1] * args[layers] * (1 + args[directions]) * each)

    return count


def _cell(cell: Cell) -> Count:
    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        has_biases = len(args) > 3 and args[3] is not None
        return elements(args[2]) * (cell.forward + 2 * cell.gates * has_biases)

    return count


def _cell_backward(cell: Cell, state: int) -> Count:
    def count(args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
        return elements(args[state]) * (cell.backward + cell.gates * bool(args[-1]))

    return count


GATES: dict[str, Count] = {
    "mkldnn_rnn_layer": _layer_gates,
    "mkldnn_rnn_layer_backward": _layer_gates_backward,
    "_cudnn_rnn": _layers_gates(6, 9, 13),
    "_cudnn_rnn_backward": _layers_gates(10, 13, 17),
    "miopen_rnn": _layers_gates(5, 7, 11),
    "miopen_rnn_backward": _layers_gates(10, 12, 16),
    "_thnn_fused_lstm_cell": _cell(LSTM),
    "_thnn_fused_lstm_cell_backward": _cell_backward(LSTM, 2),
    "_thnn_fused_lstm_cell_backward_impl": _cell_backward(LSTM, 2),
    "_thnn_fused_gru_cell": _cell(GRU),
    "_thnn_fused_gru_cell_backward": _cell_backward(GRU, 0),
}
