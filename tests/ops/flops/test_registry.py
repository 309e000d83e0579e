"""Tests FLOP formulas against closed forms, torch's own counter and torch's own formulas."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import (
    FlopCounterMode,
    flop_registry,
    register_flop_formula,
    sdpa_backward_flop_count,
)

import nbkit
from nbkit.errors import OptionError
from nbkit.ops.flops import FORMULAS, call_flops, formulas, packet_name
from sample_models.llama import LLAMA_TINY, Llama

QUERY, KEY, VALUE = [2, 6, 7, 8], [2, 3, 5, 8], [2, 3, 5, 4]
CONV = [[2, 3, 9, 9], [6, 3, 3, 2], None, [2, 1], [1, 0], [1, 2]]  # its result is 5 x 7
RECURRENT_WEIGHTS = [[16, 3], [16, 4], [16], [16]] * 2  # an LSTM of 4 in both directions
TRANSPOSED = [[2, 4, 10], [4, 6, 3], None, [2], [0], [1], True, [1], 1]  # 10 to 22


@pytest.fixture
def table():
    """Restores the table as it was before, after the test."""
    before = dict(FORMULAS)
    yield FORMULAS
    FORMULAS.clear()
    FORMULAS.update(before)


@pytest.mark.parametrize(
    ("op", "arguments", "flops"),
    [
        ("mm", [[3, 4], [4, 5]], 2 * 3 * 4 * 5),
        ("addmm", [[5], [3, 4], [4, 5]], 2 * 3 * 4 * 5),
        ("baddbmm", [[2, 3, 5], [2, 3, 4], [2, 4, 5]], 2 * 2 * 3 * 4 * 5),
        ("convolution", [*CONV, False, [0, 0], 1], 2 * 2 * 6 * 3 * 6 * 35),
        ("convolution", [[2, 6, 9], [4, 3, 2], [4], [1], [0], [1], False, [0], 2], 2 * 2 * 4 * 3 * 2 * 8),
        ("convolution", TRANSPOSED, 2 * 2 * 4 * 6 * 3 * 10),
        ("mkldnn_convolution", [*CONV[:3], CONV[4], CONV[3], CONV[5], 1], 2 * 2 * 6 * 3 * 6 * 35),
        ("cudnn_convolution", [*CONV[:2], CONV[4], CONV[3], CONV[5], 1], 2 * 2 * 6 * 3 * 6 * 35),
        ("_slow_conv2d_forward", [*CONV[:2], [3, 2], [], [2, 1], [1, 0]], 2 * 2 * 6 * 3 * 6 * 5 * 8),
        ("_scaled_dot_product_flash_attention_for_cpu", [QUERY, KEY, VALUE], 2 * 12 * 7 * 5 * 12),
        ("cudnn_convolution_transpose", [*TRANSPOSED[:2], [0], [0], [2], [1], 1], 2 * 2 * 4 * 6 * 3 * 10),
        ("cudnn_convolution_relu", [*CONV[:3], *CONV[3:], 1], 2 * 2 * 6 * 3 * 6 * 35),
        ("cudnn_convolution_add_relu", [*CONV[:2], [2, 6, 5, 7], 1, None, *CONV[3:], 1], 2 * 2 * 6 * 3 * 6 * 35),
        ("_conv_depthwise2d", [[2, 6, 9, 9], [6, 1, 3, 2], [3, 2], None, *CONV[3:]], 2 * 2 * 6 * 6 * 35),
        ("conv_tbc", [[9, 2, 4], [3, 4, 6], [6], 1], 2 * 9 * 2 * 4 * 6 * 3),
        ("_grouped_mm", [[12, 4], [3, 4, 5], [3]], 2 * 12 * 4 * 5),
        ("_grouped_mm", [[3, 2, 4], [3, 4, 5], []], 2 * 3 * 2 * 4 * 5),
        ("_grouped_mm", [[4, 12], [12, 5], [3]], 2 * 4 * 12 * 5),
        ("_foreach_mm", [[[3, 4], [2, 3]], [[4, 5], [3, 6]]], 2 * (3 * 4 * 5 + 2 * 3 * 6)),
        ("_weight_int8pack_mm", [[3, 64], [16, 64], [16]], 2 * 3 * 64 * 16),
        ("_weight_int4pack_mm", [[3, 64], [2, 1, 32, 4], 32, [2, 16, 2]], 2 * 3 * 64 * 16),
        ("linear_backward", [[3, 4], [3, 5], [5, 4], [True, True, True]], 2 * 2 * 3 * 4 * 5),
        ("linear_backward", [[3, 4], [3, 5], [5, 4], [False, True, False]], 2 * 3 * 4 * 5),
        ("_trilinear", [[7, 3], [7, 4], [5, 3, 4], [1, 3], [1, 2], [0], [2, 3]], 2 * 7 * 5 * 3 * 4),
        ("affine_grid_generator", [[2, 2, 3], [2, 3, 4, 5], False], 2 * 2 * 20 * 2 * 3),
        ("_flash_attention_forward", [[2, 7, 6, 8], [2, 5, 6, 8], [2, 5, 6, 4], [], []], 2 * 12 * 7 * 5 * 12),
        ("_efficient_attention_forward", [[2, 7, 6, 8], [2, 5, 6, 8], [2, 5, 6, 4], [], [], []], 2 * 12 * 7 * 5 * 12),
        ("_cudnn_rnn", [[7, 2, 3], RECURRENT_WEIGHTS, 4], 2 * 14 * 2 * (16 * 3 + 16 * 4)),
        ("_cudnn_rnn_backward", [[7, 2, 3], RECURRENT_WEIGHTS, 4, [True] * 4], 2 * 2 * 14 * 2 * (16 * 3 + 16 * 4)),
        ("_cudnn_rnn_backward", [[7, 2, 3], RECURRENT_WEIGHTS, 4, [True] * 3 + [False]], 2 * 14 * 2 * (48 + 64)),
        # R, Q by three right sides, and as many triangular solutions.
        ("linalg_lstsq", [[9, 6], [9, 3]], 2 * 6**2 * (9 - 2) + 3 * (4 * 9 * 6 - 2 * 6**2) + 3 * 6**2),
        ("_scaled_dot_product_cudnn_attention_backward", [VALUE, QUERY, KEY, VALUE], 2 * 12 * 7 * 5 * 32),
    ],
)
def test_flops_are_those_of_the_closed_form(op, arguments, flops):
    assert FORMULAS[f"aten.{op}"](*arguments) == flops


def test_each_wanted_gradient_of_a_convolution_counts_once():
    backward, shapes = FORMULAS["aten.convolution_backward"], [[2, 6, 5, 7], [2, 6, 9, 9], [6, 3, 3, 2]]
    options = [[6], [2, 1], [1, 0], [1, 2], False, [0, 0], 2]  # two groups
    forward = 2 * 2 * 6 * 3 * 6 * 35
    assert backward(*shapes, *options, [True, True, True]) == 2 * forward
    assert backward(*shapes, *options, [False, True, True]) == forward
    assert backward(*shapes, *options, [False, False, True]) == 0
    overrideable = FORMULAS["aten.convolution_backward_overrideable"]
    assert overrideable(*shapes, *options[1:], [True, False, True]) == forward
    slow = FORMULAS["aten._slow_conv2d_backward"]
    assert slow(*shapes, [3, 2], *options[1:3], [True, True, False]) == 2 * forward
    assert slow(*shapes, [3, 2], *options[1:3], [False, True, False]) == forward
    apples = FORMULAS["aten.mps_convolution_backward"]  # takes the input before the gradient
    assert apples(shapes[1], shapes[0], shapes[2], *options[1:4], 2, [True, False, True]) == forward


def test_every_op_of_torchs_table_that_needs_only_shapes_is_in_ours():
    theirs = {str(op) for op, formula in flop_registry.items() if hasattr(formula, "__wrapped__")}
    assert theirs and theirs <= set(FORMULAS)


@pytest.mark.parametrize("kind", ["flash", "efficient"])
def test_gradients_of_attention_with_its_heads_third_cost_as_those_of_torch_with_heads_second(kind):
    gradient = [2, 6, 7, 4]
    shapes = [[batch, rows, heads, width] for batch, heads, rows, width in (gradient, QUERY, KEY, VALUE)]
    expected = sdpa_backward_flop_count(gradient, QUERY, KEY, VALUE)
    assert FORMULAS[f"aten._{kind}_attention_backward"](*shapes, *[[]] * 4, 7, 5) == expected


@pytest.mark.parametrize("kind", ["flash", "efficient", "cudnn"])
def test_attention_agrees_with_torchs_formulas(kind):
    op = getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention")
    assert flop_registry[op](QUERY, KEY, VALUE) == FORMULAS[str(op)](QUERY, KEY, VALUE)
    gradient, op = [2, 6, 7, 4], getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention_backward")
    assert flop_registry[op](gradient, QUERY, KEY, VALUE) == FORMULAS[str(op)](gradient, QUERY, KEY, VALUE)


def convolutions():
    x = torch.ones(2, 4, 9, 9, requires_grad=True)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2)),
        torch.nn.ConvTranspose2d(6, 5, 3, stride=2, output_padding=1, bias=False),
        torch.nn.Flatten(2),
        torch.nn.Conv1d(5, 3, 4),
    )
    return lambda: net(x).sum().backward()


def language_model():
    model, tokens = Llama(LLAMA_TINY), torch.arange(8).reshape(1, 8)

    def step():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # torch counts no other on the CPU
            model(tokens).sum().backward()

    return step


@pytest.mark.parametrize("make", [convolutions, language_model])
def test_optime_counts_what_torch_counts(make):
    step = make()
    with FlopCounterMode(display=False) as counter:
        step()
    with nbkit.optime(shapes=True) as trace:
        step()
    assert trace.ops["flops"].sum() == counter.get_total_flops() > 0


def test_attention_on_the_cpu_counts_forward_and_backward():
    query = torch.ones(1, 2, 6, 4, requires_grad=True)
    with nbkit.optime(shapes=True) as trace:
        F.scaled_dot_product_attention(query, query, query).sum().backward()
    assert trace.ops["flops"].dropna().tolist() == [2 * 2 * 6 * 6 * 8, 2 * 2 * 6 * 6 * 20]


def test_a_chrome_trace_of_the_profiler_tells_the_same(tmp_path):
    step = convolutions()
    with torch.profiler.profile(record_shapes=True) as profile:
        step()
    profile.export_chrome_trace(str(tmp_path / "t.json"))
    with FlopCounterMode(display=False) as counter:
        step()
    assert nbkit.load(tmp_path / "t.json").ops["flops"].sum() == counter.get_total_flops()


def test_a_registered_formula_fills_the_column(table):
    @nbkit.register_flop_formula([torch.ops.aten.cumsum, "aten::logsumexp"])
    def formula(shape, dim, *others):
        return shape[0] * 10 + (dim if isinstance(dim, int) else dim[0])

    with nbkit.optime(shapes=True) as trace:
        torch.ones(4, 3).cumsum(1)
        torch.ones(5, 3).logsumexp([0])
    counted = trace.ops[trace.ops["flops"].notna()]
    assert counted[["op", "flops"]].to_numpy().tolist() == [["aten.cumsum.default", 41], ["aten.logsumexp.default", 50]]


def test_a_formula_registered_with_torch_counts_and_one_that_raises_tells_nothing(table, monkeypatch):
    monkeypatch.setattr("torch.utils.flop_counter.flop_registry", {**flop_registry})
    register_flop_formula(torch.ops.aten.cumsum)(lambda shape, dim, *others, out_shape=None, **options: 7 * shape[0])
    assert call_flops(formulas()["aten.cumsum"], [[4, 3], []], [None, 1]) == 28
    assert call_flops(formulas()["aten.mm"], [[3, 4]]) is None
    assert call_flops(FORMULAS["aten.convolution"], [[2, 3, 9, 9], [6, 3, 3, 2], [6], [], [], [], [], [], []]) is None


def test_a_target_that_is_no_op_is_refused():
    assert packet_name(torch.ops.aten.mm.default) == packet_name("aten::mm") == "aten.mm"
    with pytest.raises(OptionError, match=r"7 is not an op; give one such as torch.ops.mylib.attention, or its name."):
        nbkit.register_flop_formula(["aten.mm", 7])


def test_lengths_of_packed_sequences_are_no_shapes():
    packed = [[14, 6, 8], [10, 6, 8], [10, 6, 4], [3], [3]]
    assert call_flops(FORMULAS["aten._flash_attention_forward"], packed) is None
