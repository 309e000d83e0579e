"""Tests the table of rules against closed forms, against algorithms that count, and against ops that do the same."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit.flops import FORMULAS, RULES, rule_of

X, Y = torch.ones(4, 6), torch.ones(4, 6, requires_grad=True)
IMAGE = torch.ones(2, 3, 8, 8)


def costs(step):
    return nbkit.opcost().run(step).costs


def last(step):
    """Returns op, FLOPs and elementwise FLOPs of a step's last call that is no view."""
    table = costs(step)
    row = table[table["read_bytes"] > 0].iloc[-1]
    return row["op"].split(".")[1], row["flops"], row["elementwise_flops"]


def totals(step):
    table = costs(step)
    assert table[["flops", "elementwise_flops"]].notna().all(axis=None)
    return int(table["flops"].sum()), int(table["elementwise_flops"].sum())


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
        (lambda: F.conv2d(IMAGE, torch.ones(4, 3, 3, 3), torch.ones(4)), ("convolution", 2 * 2 * 36 * 108, 2 * 4 * 36)),
        (lambda: torch.fft.fft(torch.ones(3, 8) + 0j), ("_fft_c2c", 3 * 5 * 8 * 3, 0)),
        (lambda: torch.fft.rfft2(torch.ones(3, 4, 8)), ("_fft_r2c", 3 * 5 * 32 * 5 // 2, 0)),
        (lambda: torch.fft.irfft(torch.ones(3, 5) + 0j), ("_fft_c2r", 3 * 5 * 8 * 3 // 2, 0)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_call_costs_what_its_closed_form_says(step, cost):
    assert last(step) == cost


class Counted:
    """A number that counts its additions and multiplications."""

    operations = 0

    def __init__(self, value):
        self.value = value

    def _apply(self, function, other):
        Counted.operations += 1
        return Counted(function(self.value, other.value if isinstance(other, Counted) else other))

    def __add__(self, other):
        return self._apply(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self._apply(lambda a, b: a - b, other)

    def __mul__(self, other):
        return self._apply(lambda a, b: a * b, other)

    def __truediv__(self, other):
        return self._apply(lambda a, b: a / b, other)


def matrix(rows, columns):
    values = np.random.default_rng(0).normal(size=(rows, columns)) + 4 * np.eye(rows, columns)
    return [[Counted(value) for value in row] for row in values]


def eliminate(a, pivots):
    """Gives the LU factors of `a` in its place."""
    for k in range(pivots):
        for i in range(k + 1, len(a)):
            a[i][k] = a[i][k] / a[k][k]
            for j in range(k + 1, len(a[0])):
                a[i][j] = a[i][j] - a[i][k] * a[k][j]


def factor(a):
    """Gives the lower Cholesky factor of `a` in its place, but for roots of the diagonal."""
    for k in range(len(a)):
        for i in range(k + 1, len(a)):
            a[i][k] = a[i][k] / a[k][k]
        for j in range(k + 1, len(a)):
            for i in range(j, len(a)):
                a[i][j] = a[i][j] - a[i][k] * a[j][k]


def substitute(a, b):
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(i):
                b[i][j] = b[i][j] - a[i][k] * b[k][j]
            b[i][j] = b[i][j] / a[i][i]


def reflect(a):
    """Applies a Householder reflector for each column of `a` (m, n) to those at its right."""
    for k in range(len(a[0])):
        vector = [row[k] for row in a[k:]]
        for j in range(k, len(a[0])):
            dot = vector[0] * a[k][j]
            for i in range(1, len(vector)):
                dot = dot + vector[i] * a[k + i][j]
            for i in range(len(vector)):
                a[k + i][j] = a[k + i][j] - vector[i] * dot


N, M, RIGHT = 40, 56, 24
LINALG = torch.ones(N, N)


@pytest.mark.parametrize(
    ("op", "sizes", "algorithm"),
    [
        ("linalg_lu_factor_ex", [[N, N]], lambda: eliminate(matrix(N, N), N)),
        ("linalg_lu_factor_ex", [[M, N]], lambda: eliminate(matrix(M, N), N)),
        ("linalg_cholesky_ex", [[N, N]], lambda: factor(matrix(N, N))),
        ("linalg_solve_triangular", [[N, N], [N, RIGHT]], lambda: substitute(matrix(N, N), matrix(N, RIGHT))),
        ("geqrf", [[M, N]], lambda: reflect(matrix(M, N))),
    ],
)
def test_factorizations_cost_what_their_algorithms_count(op, sizes, algorithm):
    Counted.operations = 0
    algorithm()
    assert FORMULAS[f"aten.{op}"](*sizes) == pytest.approx(Counted.operations, rel=0.08)


@pytest.mark.parametrize(
    ("step", "op", "flops"),
    [
        (
            lambda: torch.linalg.solve(LINALG, torch.ones(N, RIGHT)),
            "_linalg_solve_ex",
            2 * N**3 // 3 + 2 * N**2 * RIGHT,
        ),
        (lambda: torch.linalg.solve(LINALG, torch.ones(N)), "_linalg_solve_ex", 2 * N**3 // 3 + 2 * N**2),
        (lambda: torch.linalg.inv(torch.ones(5, N, N)), "linalg_inv_ex", 5 * 2 * N**3),
        (lambda: torch.linalg.det(LINALG), "_linalg_det", 2 * N**3 // 3),
        (lambda: torch.linalg.cholesky(LINALG), "linalg_cholesky_ex", N**3 // 3),
        (lambda: torch.linalg.eigh(LINALG), "_linalg_eigh", 9 * N**3),
        (lambda: torch._linalg_eigh(LINALG, "L", False), "_linalg_eigh", 4 * N**3 // 3),
        (lambda: torch._linalg_svd(torch.ones(M, N), False, False), "_linalg_svd", (12 * M * N**2 - 4 * N**3) // 3),
        (lambda: torch.linalg.svd(torch.ones(N, M), full_matrices=False), "_linalg_svd", 14 * M * N**2 + 8 * N**3),
        (lambda: torch.linalg.qr(torch.ones(M, N)), "linalg_qr", 2 * (6 * M * N**2 - 2 * N**3) // 3),
        (lambda: torch.linalg.qr(torch.ones(M, N), mode="r"), "linalg_qr", (6 * M * N**2 - 2 * N**3) // 3),
        (lambda: torch.cholesky_solve(torch.ones(N, RIGHT), LINALG), "cholesky_solve", 2 * N**2 * RIGHT),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_linear_algebra_counts_in_the_step(step, op, flops):
    table = costs(step)
    counted = table[table["flops"] > 0]
    assert [(counted["op"].iloc[0].split(".")[1], counted["flops"].sum())] == [(op, flops)]


@pytest.mark.parametrize("groups", [1, 2, 8, 32])
def test_the_backward_pass_of_grouped_convolutions_is_twice_the_forward_pass(groups):
    net, x = nn.Conv2d(32, 32, 3, padding=1, groups=groups, bias=False), torch.ones(2, 32, 8, 8, requires_grad=True)
    by_phase = costs(lambda: net(x).sum().backward()).groupby("phase")["flops"].sum()
    assert by_phase["forward"] == 2 * 2 * 64 * 32 * 32 // groups * 9
    assert by_phase["backward"] == 2 * by_phase["forward"]


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
        assert "aten.linear.default" in set(costs(lambda: net(IMAGE))["op"])


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
    def update(**how):
        parameter = nn.Parameter(torch.ones(1000))
        parameter.grad = torch.ones(1000)
        stepper = optimizer([parameter], **how)
        stepper.step()
        return costs(stepper.step)["elementwise_flops"].sum() // 1000  # but for steps counted in numbers

    assert update(fused=True) == update(foreach=True) == update(foreach=False) > 0


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
