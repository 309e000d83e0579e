"""Tests that ops that do the same in another way cost the same: fused and plain, whole and in parts."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.ops.flops import FORMULAS, RULES

IMAGE = torch.ones(2, 3, 8, 8)


def costs(step):
    return nbkit.opcost().run(step).costs


def totals(step):
    table = costs(step)
    assert table[["flops", "elementwise_flops"]].notna().all(axis=None)
    return int(table["flops"].sum()), int(table["elementwise_flops"].sum())


def test_the_fast_path_of_attention_counts_as_the_slow_one():
    layer, x = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), torch.ones(2, 5, 16)
    with torch.no_grad():
        fast = totals(lambda: layer(x))
        assert costs(lambda: layer(x))["op"].tolist() == ["aten._transformer_encoder_layer_fwd.default"]
        enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            slow = totals(lambda: layer(x))
        finally:
            torch.backends.mha.set_fastpath_enabled(enabled)
    assert fast == slow


def test_attention_that_returns_its_weights_counts_projections_scores_and_values():
    attention, x = nn.MultiheadAttention(16, 4, batch_first=True).eval(), torch.ones(2, 5, 16)
    with torch.no_grad():
        flops, _ = totals(lambda: attention(x, x, x))
    assert flops == 2 * (4 * 10 * 16 * 16 + 2 * 2 * 4 * 5 * 5 * 4)


def test_a_recurrent_layer_counts_as_its_cells_one_after_the_other():
    layer, cell, x = nn.LSTM(6, 8), nn.LSTMCell(6, 8), torch.ones(5, 3, 6)

    def unrolled():
        state = torch.zeros(3, 8), torch.zeros(3, 8)
        for t in range(5):
            state = cell(x[t], state)

    with torch.no_grad():
        assert totals(lambda: layer(x)) == totals(unrolled)


@pytest.mark.parametrize(("kind", "mode"), [(nn.LSTM, 2), (nn.GRU, 3), (nn.RNN, 1)])
def test_gates_on_the_gpu_count_as_those_on_the_cpu(kind, mode):
    layer, x = kind(6, 8, 2, bidirectional=True), torch.ones(5, 3, 6)
    weights, state = [weight.detach() for weight in layer.parameters()], torch.ones(4, 3, 8)
    call = (x, weights, 4, None, state, state, mode, 8, 0, 2, False, 0.0, True, True, [], None)
    with torch.no_grad():
        expected = costs(lambda: layer(x))
    assert RULES["aten._cudnn_rnn"].elementwise(call, {}, ()) == expected["elementwise_flops"].sum()
    shapes = [[list(each.shape) for each in weights] if each is weights else each for each in call]
    assert FORMULAS["aten._cudnn_rnn"](list(x.shape), *shapes[1:]) == expected["flops"].sum()


@pytest.mark.parametrize(("cell", "name"), [(nn.LSTMCell, "lstm"), (nn.GRUCell, "gru")])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_fused_cell_of_the_gpu_counts_as_the_one_of_the_cpu(cell, name, has_bias):
    made, x, state = cell(6, 8, has_bias), torch.ones(3, 6), torch.ones(3, 8)
    with torch.no_grad():
        _, expected = totals(lambda: made(x, (state, state) if name == "lstm" else state))
    gates = [x @ made.weight_ih.T, state @ made.weight_hh.T]
    rule = RULES[f"aten._thnn_fused_{name}_cell"].elementwise
    assert rule([*gates, state, *([made.bias_ih, made.bias_hh] if has_bias else [])], {}, ()) == expected


def test_gradients_of_gates_on_the_gpu_count_as_those_on_the_cpu():
    layer, x, state = nn.LSTM(6, 8), torch.ones(1, 3, 6), torch.ones(3, 8)
    table = costs(lambda: layer(x)[0].sum().backward())
    expected = table.loc[table["op"].eq("aten.mkldnn_rnn_layer_backward.default"), "elementwise_flops"].item()
    weights, grads = [weight.detach() for weight in layer.parameters()], [state] * 3
    call = [
        x,
        weights,
        4,
        weights[0],
        state,
        state,
        x,
        *grads,
        2,
        8,
        0,
        1,
        False,
        0.0,
        True,
        False,
        [],
        None,
        state,
        [],
    ]
    assert RULES["aten._cudnn_rnn_backward"].elementwise(call, {}, ()) == expected
    cell = RULES["aten._thnn_fused_lstm_cell_backward"].elementwise
    assert cell([state, state, state, state, x, True], {}, ()) == expected


@pytest.mark.parametrize("layer", [nn.LSTM(6, 8, 2), nn.GRU(6, 8, bidirectional=True), nn.RNN(6, 8)], ids=str)
def test_inference_mode_counts_as_no_grad(layer):
    x = torch.ones(5, 3, 6)
    with torch.no_grad():
        expected = totals(lambda: layer(x))
    with torch.inference_mode():
        assert totals(lambda: layer(x)) == expected


def test_composite_ops_of_inference_mode_count_by_their_parts():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8), nn.LayerNorm(8))
    with torch.no_grad():
        expected = totals(lambda: F.cross_entropy(net(IMAGE), torch.ones(2).long()))
    with torch.inference_mode():
        assert totals(lambda: F.cross_entropy(net(IMAGE), torch.ones(2).long())) == expected
        parts = costs(lambda: net(IMAGE))["op"].tolist()
    with torch.no_grad():
        assert parts == costs(lambda: net(IMAGE))["op"].tolist()


FORMS = {"fused": True}, {"foreach": True}, {"foreach": False}


def update(optimizer, **how):
    """Returns what the second step costs for each element, but for steps counted in numbers."""
    parameter = nn.Parameter(torch.ones(1000))
    parameter.grad = torch.ones(1000)
    stepper = optimizer([parameter], **how)
    stepper.step()
    return costs(stepper.step)["elementwise_flops"].sum() // 1000


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda parameters, **how: torch.optim.AdamW(parameters, **how),
        lambda parameters, **how: torch.optim.Adam(parameters, weight_decay=0.1, amsgrad=True, **how),
        lambda parameters, **how: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.1, **how),
        lambda parameters, **how: torch.optim.SGD(parameters, lr=0.1, **how),
    ],
    ids=["adamw", "adam", "sgd with momentum", "sgd"],
)
def test_fused_optimizers_count_as_those_that_loop(optimizer):
    fused, in_lists, in_a_loop = (update(optimizer, **how) for how in FORMS)
    assert fused == in_lists == in_a_loop > 0


def test_adagrad_counts_fused_as_in_a_loop():
    """Over lists, torch multiplies by the learning rate in a step of its own."""
    fused, _, in_a_loop = (update(torch.optim.Adagrad, weight_decay=0.1, **how) for how in FORMS)
    assert fused == in_a_loop == 9
