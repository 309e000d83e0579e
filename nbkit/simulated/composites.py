"""Runs composite ops as torch does on the CPU, where for an accelerator it would take them apart in another way.

Each registered function stands in for a composite of torch and calls ops of the device, which autograd records.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

aten = torch.ops.aten
FLASH = 1  # of torch's enumeration of attention backends


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Returns scaled_dot_product_attention with the kernel that torch chooses on the CPU."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = aten.scalar_tensor.default(-torch.inf, dtype=query.dtype, device=query.device)
        shown = aten.scalar_tensor.default(0.0, dtype=query.dtype, device=query.device)
        attn_mask = torch.where(attn_mask, shown, hidden)
    settings = {"scale": scale, "enable_gqa": enable_gqa}
    raw = [getattr(tensor, "raw", tensor) for tensor in (query, key, value, attn_mask)]
    with no_dispatch():  # no mode is to see a question about CPU tensors
        choice = aten._fused_sdp_choice.default(*raw, dropout_p, is_causal, **settings)
    out: Tensor
    if choice == FLASH and not (attn_mask is not None and attn_mask.requires_grad):
        flash = aten._scaled_dot_product_flash_attention_for_cpu.default
        out = flash(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
    else:
        maths = aten._scaled_dot_product_attention_math.default
        out = maths(query, key, value, attn_mask, dropout_p, is_causal, None, **settings)[0]
    return out


def dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Computes torch.dropout by a mask and a product, which round differently from the fused op of accelerators."""
    if not train or p == 0 or not x.numel():
        return x
    if p == 1:
        return x * torch.zeros((), dtype=x.dtype, device=x.device)
    return x * torch.empty_like(x).bernoulli_(1 - p).div_(1 - p)


def gru(  # noqa: PLR0913  torch's own signature
    x: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """Computes torch.gru: each layer projects its whole input at once, then goes step by step."""
    x = x.transpose(0, 1) if batch_first else x
    cells, size = hx.unbind(0), 4 if has_biases else 2
    last: list[Tensor] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(1 + bidirectional):
            number = len(last)
            weights: list[Any] = [*params[number * size : (number + 1) * size], None, None][:4]
            steps = torch.nn.functional.linear(x, weights[0], weights[2]).unbind(0)
            states = gru_states(steps[::-1] if direction else steps, cells[number], weights[1], weights[3])
            last.append(states[-1])
            outputs.append(torch.stack(states[::-1] if direction else states))
        x = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and train and layer < num_layers - 1:
            x = torch.dropout(x, dropout, True)
    return x.transpose(0, 1) if batch_first else x, torch.stack(last)


def gru_states(steps: Sequence[Tensor], hidden: Tensor, weight: Any, bias: Any) -> list[Tensor]:
    """Returns the state after each step, from the projected inputs."""
    states = []
    for step in steps:
        hidden = gru_gates(step, torch.nn.functional.linear(hidden, weight, bias), hidden)
        states.append(hidden)
    return states


def gru_gates(of_input: Tensor, of_hidden: Tensor, hidden: Tensor) -> Tensor:
    """Returns a GRU cell's next state. Its in-place ops are torch's own: they decide what autograd keeps and rounds."""
    input_parts, hidden_parts = of_input.unsafe_chunk(3, 1), of_hidden.unsafe_chunk(3, 1)
    reset = hidden_parts[0].add_(input_parts[0]).sigmoid_()
    update = hidden_parts[1].add_(input_parts[1]).sigmoid_()
    new = input_parts[2].add(hidden_parts[2].mul_(reset)).tanh_()
    return (hidden - new).mul_(update).add_(new)


def fused_gru_cell(
    of_input: Tensor, of_hidden: Tensor, hx: Tensor, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[Tensor, Tensor]:
    """Returns the cell of torch.gru_cell and of packed sequences."""
    of_input, of_hidden = _with_bias(of_input, input_bias), _with_bias(of_hidden, hidden_bias)
    return gru_gates(of_input, of_hidden, hx), of_input


def fused_lstm_cell(
    of_input: Tensor, of_hidden: Tensor, cx: Tensor, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the cell of every LSTM."""
    gates = _with_bias(of_input, input_bias) + _with_bias(of_hidden, hidden_bias)
    into, forget, new, out = gates.unsafe_chunk(4, 1)
    cell = forget.sigmoid() * cx + into.sigmoid() * new.tanh()
    return out.sigmoid() * cell.tanh(), cell, gates


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


COMPOSITES: dict[Any, Callable[..., Any]] = {
    aten.scaled_dot_product_attention.default: attention,
    aten.dropout.default: dropout,
    aten.gru.input: gru,
    aten._thnn_fused_gru_cell.default: fused_gru_cell,
    aten._thnn_fused_lstm_cell.default: fused_lstm_cell,
}
