"""Tests the table of rules call by call against closed forms."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.ops.flops import FORMULAS, RULES, rule_of

X, Y = torch.ones(4, 6), torch.ones(4, 6)
IMAGE = torch.ones(2, 3, 8, 8)
# Of input, weight and bias, as a mask asks for them.
GRADIENTS = partial(
    torch.ops.aten.convolution_backward,
    *(torch.ones(2, 4, 6, 6), IMAGE, torch.ones(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
)


def costs(step):
    return nbkit.opcost().run(step).costs


def last(step):
    """Returns op, FLOPs and elementwise FLOPs of a step's last call that is no view."""
    table = costs(step)
    row = table[table["read_bytes"] + table["written_bytes"] > 0].iloc[-1]
    return row["op"].split(".")[1], row["flops"], row["elementwise_flops"]


def test_every_rule_is_of_an_op_of_torch():
    names = {name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    assert [name for name in RULES if not {name[5:], f"{name[5:]}_"} & names] == []
    assert set(FORMULAS) >= {name for name, rule in RULES.items() if rule.flops is not None}


@pytest.mark.parametrize(
    ("step", "cost"),
    [
        (lambda: X + 1, ("add", 0, 24)),
        (lambda: X.clone().sub_(1), ("sub_", 0, 24)),
        (lambda: F.gelu(X), ("gelu", 0, 24)),
        (lambda: X > 0, ("gt", 0, 24)),
        (lambda: F.glu(X), ("glu", 0, 2 * 12)),
        (lambda: torch.addcmul(X, X, X), ("addcmul", 0, 3 * 24)),
        (lambda: torch.cat([X, X]), ("cat", 0, 0)),
        (lambda: X.clone().fill_(1), ("fill_", 0, 0)),
        (lambda: X[torch.zeros(9, dtype=torch.long)], ("index", 0, 0)),
        (lambda: X.to(torch.float64), ("_to_copy", 0, 0)),
        (lambda: torch.native_dropout(X, 0.5, True), ("native_dropout", 0, 2 * 24)),
        (lambda: X.sum(1), ("sum", 0, 24)),
        (lambda: X.amax(0), ("amax", 0, 24)),
        (lambda: X.norm(), ("linalg_vector_norm", 0, 2 * 24)),
        (lambda: X.var(1), ("var", 0, 4 * 24)),
        (lambda: X.softmax(1), ("_softmax", 0, 4 * 24)),
        (lambda: X.sort(1), ("sort", 0, 24 * 3)),
        (lambda: torch.searchsorted(torch.ones(16), X), ("searchsorted", 0, 24 * 4)),
        (lambda: F.layer_norm(X, (6,)), ("native_layer_norm", 0, 4 * 24)),
        (lambda: F.layer_norm(X, (6,), torch.ones(6)), ("native_layer_norm", 0, 5 * 24)),
        (lambda: F.batch_norm(X, torch.ones(6), torch.ones(6)), ("native_batch_norm", 0, 2 * 24)),
        (lambda: F.mse_loss(X, X), ("mse_loss", 0, 3 * 24)),
        (lambda: F.mse_loss(X, X, reduction="none"), ("mse_loss", 0, 2 * 24)),
        (lambda: F.max_pool2d(IMAGE, 3, 1), ("max_pool2d_with_indices", 0, 9 * 2 * 3 * 36)),
        (lambda: F.avg_pool2d(IMAGE, 2), ("avg_pool2d", 0, 2 * 3 * 64)),
        (lambda: F.adaptive_avg_pool2d(IMAGE, 2), ("_adaptive_avg_pool2d", 0, 2 * 3 * 64)),
        (lambda: F.interpolate(IMAGE, size=(5, 7), mode="bilinear"), ("upsample_bilinear2d", 0, 7 * 6 * 35)),
        (lambda: F.interpolate(IMAGE, size=(5, 7)), ("upsample_nearest2d", 0, 0)),
        (lambda: F.grid_sample(IMAGE, torch.ones(2, 4, 5, 2)), ("grid_sampler_2d", 0, 7 * 6 * 20)),
        (lambda: F.grid_sample(IMAGE, torch.ones(2, 4, 5, 2), "nearest"), ("grid_sampler_2d", 0, 0)),
        (lambda: torch.zeros(9).index_add(0, torch.ones(5).long(), torch.ones(5)), ("index_add", 0, 5)),
        (lambda: torch.zeros(9).scatter_add(0, torch.ones(5).long(), torch.ones(5)), ("scatter_add", 0, 5)),
        (lambda: torch.zeros(9).scatter(0, torch.ones(5).long(), torch.ones(5)), ("scatter", 0, 0)),
        (lambda: torch.zeros(9).index_put((torch.ones(5).long(),), torch.ones(5)), ("index_put", 0, 0)),
        (lambda: torch.zeros(9).index_put((torch.ones(5).long(),), torch.ones(5), True), ("index_put", 0, 5)),
        (lambda: F.embedding_bag(torch.ones(2, 3).long(), torch.ones(9, 8)), ("_embedding_bag_forward_only", 0, 48)),
        (lambda: torch._foreach_mul([X, IMAGE], 2), ("_foreach_mul", 0, 24 + 384)),
        (lambda: torch._foreach_addcdiv_([X.clone()], [X], [X]), ("_foreach_addcdiv_", 0, 3 * 24)),
        (lambda: torch.addmm(torch.ones(4), X, X.t()), ("addmm", 2 * 4 * 6 * 4, 16)),
        (lambda: X @ torch.ones(6), ("mv", 2 * 24, 0)),
        (lambda: torch.ones(6) @ torch.ones(6), ("dot", 2 * 6, 0)),
        (lambda: torch.einsum("ij,kj->ik", X, X), ("bmm", 2 * 4 * 6 * 4, 0)),
        (lambda: torch._int_mm(torch.ones(32, 16).char(), torch.ones(16, 8).char()), ("_int_mm", 2 * 32 * 16 * 8, 0)),
        (lambda: torch.cdist(X, torch.ones(5, 6), p=1.0), ("_cdist_forward", 0, 3 * 4 * 5 * 6)),
        # The squares of both sides, a product of rows with two more columns, and each distance's bound and root.
        (
            lambda: torch.cdist(X, torch.ones(5, 6), compute_mode="use_mm_for_euclid_dist"),
            ("_euclidean_dist", 2 * 4 * (6 + 2) * 5, 2 * (4 + 5) * 6 + 2 * 4 * 5),
        ),
        (
            lambda: torch.ops.aten.avg_pool2d_backward(torch.ones(2, 3, 2, 4), IMAGE, [4, 2], [], [0, 0], 0, 1, None),
            ("avg_pool2d_backward", 0, 8 * 2 * 3 * 8),
        ),
        (lambda: F.conv2d(IMAGE, torch.ones(4, 3, 3, 3), torch.ones(4)), ("convolution", 2 * 2 * 36 * 108, 2 * 4 * 36)),
        (lambda: GRADIENTS([False, False, True]), ("convolution_backward", 0, 2 * 4 * 36)),
        (lambda: GRADIENTS([True, False, False]), ("convolution_backward", 2 * 2 * 36 * 108, 0)),
        (lambda: torch.fft.fft(torch.ones(3, 8) + 0j), ("_fft_c2c", 3 * 5 * 8 * 3, 0)),
        (lambda: torch.fft.rfft2(torch.ones(3, 4, 8)), ("_fft_r2c", 3 * 5 * 32 * 5 // 2, 0)),
        (lambda: torch.fft.irfft(torch.ones(3, 5) + 0j), ("_fft_c2r", 3 * 5 * 8 * 3 // 2, 0)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_call_costs_what_its_closed_form_says(step, cost):
    assert last(step) == cost


def test_finding_different_values_costs_as_sorting_all_of_them():
    assert RULES["aten._unique2"].elementwise([X], {}, ()) == 24 * 5


@pytest.mark.parametrize("groups", [1, 2, 8, 32])
def test_the_backward_pass_of_grouped_convolutions_is_twice_the_forward_pass(groups):
    net, x = nn.Conv2d(32, 32, 3, padding=1, groups=groups, bias=False), torch.ones(2, 32, 8, 8, requires_grad=True)
    by_phase = costs(lambda: net(x).sum().backward()).groupby("phase")["flops"].sum()
    assert by_phase["forward"] == 2 * 2 * 64 * 32 * 32 // groups * 9
    assert by_phase["backward"] == 2 * by_phase["forward"]


@pytest.mark.parametrize(("mode", "taps"), [("bilinear", 4), ("nearest", 1), ("bicubic", 16)])
def test_a_sampled_grid_counts_a_product_and_a_sum_for_each_tap_of_both_gradients(mode, taps):
    image, grid = IMAGE.clone().requires_grad_(), torch.ones(2, 4, 5, 2, requires_grad=True)
    table = costs(lambda: F.grid_sample(image, grid, mode, align_corners=False).sum().backward())
    counted = table.set_index("op")["elementwise_flops"]
    assert counted["aten.grid_sampler_2d_backward.default"] == 2 * 2 * taps * 2 * 3 * 4 * 5


def test_gradients_of_fused_attention_take_the_softmax_again_and_its_derivative():
    query, key = torch.ones(2, 3, 5, 8, requires_grad=True), torch.ones(2, 3, 7, 8)
    scores = 2 * 3 * 5 * 7
    table = costs(lambda: F.scaled_dot_product_attention(query, key, key).sum().backward()).set_index("op")
    row = table.loc["aten._scaled_dot_product_flash_attention_for_cpu_backward.default"]
    # Scores again, and gradients of values, weights, queries and keys; each result by its gradient.
    assert row[["flops", "elementwise_flops"]].tolist() == [5 * 2 * scores * 8, 6 * scores + 2 * query.numel()]


def test_what_is_elementwise_in_a_training_step():
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    table = costs(lambda: F.mse_loss(net(X), torch.ones(4, 3)).backward())
    by_phase = table.groupby("phase")["elementwise_flops"].sum()
    assert by_phase["forward"] == 32 + 32 + 12 + 3 * 12  # two biases, one activation, differences squared and summed
    # A number that starts it, the loss, and for each bias its sum; the activation between them.
    assert by_phase["backward"] == 3 * 12 + 12 + 32 + 32


def test_an_op_without_a_rule_is_null_and_listed():
    trace = nbkit.opcost().run(lambda: torch.linalg.matrix_exp(torch.ones(4, 4)))
    assert trace.costs.iloc[-1][["flops", "elementwise_flops"]].isna().all()
    assert trace.meta["unknown_flops"] == {"aten.linalg_matrix_exp.default": 1}
    assert rule_of(torch.ops.aten.linalg_matrix_exp.default) is None


def test_modules_add_up_both_kinds():
    net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8))
    trace = nbkit.opcost().run(lambda: net(X))
    assert trace.module_costs["elementwise_flops"].tolist() == [32 + 5 * 32, 32, 5 * 32]


def test_a_custom_op_has_both_rules_of_the_user(monkeypatch):
    monkeypatch.setattr("nbkit.ops.flops.registry.FORMULAS", dict(FORMULAS))
    library = torch.library.Library("ruled", "DEF")
    library.define("scores(Tensor q, Tensor k) -> Tensor")
    library.impl("scores", lambda q, k: (q @ k.t()).relu(), "CPU")
    nbkit.register_flop_formula("ruled.scores")(lambda q, k: 2 * q[0] * q[1] * k[0])
    with pytest.raises(nbkit.CostError, match=r"^ruled\.scores has no rule for the shape of its result.*fake\.$"):
        costs(lambda: torch.ops.ruled.scores(X, X))
    nbkit.register_shape_formula("ruled.scores")(lambda q, k: q.new_empty(len(q), len(k)))
    trace = nbkit.opcost().run(lambda: torch.ops.ruled.scores(X, Y))
    assert trace.costs["flops"].tolist() == [2 * 4 * 6 * 4] and trace.costs["elementwise_flops"].isna().all()
    assert trace.meta["unknown_flops"] == {}
