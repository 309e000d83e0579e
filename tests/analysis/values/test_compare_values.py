"""The values of two recorded runs of real steps: a planted fault, a changed weight, another op, another dtype."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from tests.capture.diff.planted import Planted, scaled
from tests.capture.models import MODELS, OPTIMIZERS, SHAPES, loss_of, record

FAULTY = {
    "rwkv4": "mm.default native_layer_norm_backward.default addcdiv_.default",
    "llama": "silu.default _scaled_dot_product_flash_attention_for_cpu_backward.default lerp_.Scalar",
    "conv": "convolution.default native_batch_norm_backward.default",
    "gru": "tanh_.default tanh_backward.default",
}


def training(name, change=lambda model: None):
    """The trace of two steps from a fixed seed, of a model that `change` had its way with."""
    torch.manual_seed(0)
    model = MODELS[name]()
    change(model)
    updates = OPTIMIZERS["adamw"](model.parameters())

    def step():
        torch.manual_seed(1)
        for _ in range(2):
            updates.zero_grad()
            loss_of(model, name).backward()
            updates.step()

    return record(step, values="stats")


def first_of(left, right):
    return nbkit.compare_values(left, right).attrs["first_divergence"]


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_of_a_ten_thousandth_is_where_the_runs_part(name):
    right = training(name)
    for op in (f"aten.{op}" for op in FAULTY[name].split()):
        with Planted(op, scaled):
            left = training(name)
        found = nbkit.compare_values(left, right)
        first = found.attrs["first_divergence"]
        assert (first["op"], first["error_class"]) == (op, "local")
        assert first["output_error"] == pytest.approx(1e-4, rel=0.05)
        before = found["error_class"][(found["left_id"] < first["op_id"]).fillna(False)]
        assert set(before.dropna()) == {"clean"}
        assert (found["error_class"] == "propagated").any()


def test_a_changed_weight_is_where_the_runs_part():
    def change(model):
        with torch.no_grad():
            model[3].bias.mul_(1.01)

    first = first_of(training("mlp", change), training("mlp"))
    assert (first["op"], first["module"], first["error_class"]) == ("aten.addmm.default", "3", "input")
    assert first["message"].startswith("input 0 (3.bias) differs, and no recorded op made it")


class Net(nn.Module):
    def __init__(self, between):
        super().__init__()
        self.a, self.b, self.between = nn.Linear(8, 8), nn.Linear(8, 2), between

    def forward(self, x):
        return self.b(self.between(self.a(x)))


def between(function):
    torch.manual_seed(0)
    model, x = Net(function), torch.randn(4, 8)
    return record(lambda: model(x).sum().backward(), values="stats")


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (F.gelu, "aten.gelu.default"),
        (lambda x: F.relu(x * 2), "aten.mul.Tensor"),
        (lambda x: x, "aten.relu.default"),
        (lambda x: F.relu(x.double() + 1).float(), "aten.add.Tensor"),
    ],
)
def test_a_changed_op_is_where_the_runs_part(function, op):
    first = first_of(between(function), between(F.relu))
    assert (first["op"], first["module"], first["error_class"]) == (op, "", "local")


def test_a_last_op_that_was_changed_is_where_the_runs_part():
    x = torch.rand(3)
    left, right = (record(lambda op=op: op(x * 2), values="stats") for op in (torch.exp, torch.sin))
    first = first_of(left, right)
    assert (first["op"], first["right_op"]) == ("aten.exp.default", "aten.sin.default")
    assert first["message"].startswith("the right run has another op in its place, and its result differs: max")


def attention(heads_of):
    """The trace of grouped-query attention: 4 query heads, 2 key and value heads, which `heads_of` makes 4 of."""
    torch.manual_seed(0)
    queries, *keys_values = (nn.Linear(32, size, bias=False) for size in (32, 16, 16))
    out, x = nn.Linear(32, 32, bias=False), torch.randn(3, 6, 32)

    def step():
        query, key, value = (linear(x).unflatten(-1, (-1, 8)).transpose(1, 2) for linear in (queries, *keys_values))
        result = F.scaled_dot_product_attention(query, heads_of(key), heads_of(value), is_causal=True)
        out(result.transpose(1, 2).flatten(2))

    return record(step, values="stats")


def expanded(heads, dim):
    return heads.unsqueeze(dim).expand(3, 2, 2, 6, 8).reshape(3, 4, 6, 8)


ORDERS = {
    "repeat": (
        lambda heads: heads.repeat(1, 2, 1, 1),
        "aten.repeat.default",
        "the right run has another op in its place",
    ),
    "index": (lambda heads: heads[:, [0, 1, 0, 1]], "aten.index.Tensor", "the right run has another op in its place"),
    "expand": (
        lambda heads: expanded(heads, 1),
        "aten.unsqueeze.default",
        "its arguments are not the same in both runs",
    ),
    "flip": (lambda heads: expanded(heads, 2).flip(1), "aten.flip.default", "only the left run has it"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_heads_in_another_order_are_named_where_the_order_is_made(name):
    heads_of, op, how = ORDERS[name]
    found = nbkit.compare_values(attention(heads_of), attention(lambda heads: expanded(heads, 2)))
    first = found.attrs["first_divergence"]
    assert (first["op"], first["error_class"]) == (op, "local")
    assert first["message"].startswith(
        f"{how}, and it can change the order of elements, which statistics do not show; the first result to differ "
        f"after it is that of aten._scaled_dot_product_flash_attention_for_cpu.default: the statistics of its inputs "
        f"differ by "
    )
    product = found[found["op"].str.contains("scaled_dot_product")].iloc[0]
    row = int(found.index[found["message"] == first["message"]][0])
    assert (product["error_class"], product["origin_id"]) == ("propagated", row)


def test_heads_in_the_same_order_by_other_ops_are_no_fault():
    others = (lambda heads: heads.repeat_interleave(2, 1), lambda heads: heads[:, [0, 0, 1, 1]])
    right = attention(lambda heads: expanded(heads, 2))
    assert [first_of(attention(heads_of), right) for heads_of in others] == [None, None]


def test_an_order_that_attention_agreed_on_is_not_blamed_for_what_differs_after_it():
    with Planted("aten.mm.default", scaled, call=3):
        left = attention(lambda heads: heads[:, [0, 0, 1, 1]])
    first = first_of(left, attention(lambda heads: expanded(heads, 2)))
    assert (first["op"], first["error_class"]) == ("aten.mm.default", "local")


@pytest.mark.parametrize("function", [lambda x: x.clamp(min=0), lambda x: F.relu(x.double()).float(), F.relu])
def test_other_ops_with_the_same_values_are_no_fault(function):
    found = nbkit.compare_values(between(function), between(F.relu))
    assert found.attrs["first_divergence"] is None
    assert set(found["error_class"].dropna()) == {"clean"}


def of_dtype(name, dtype, autocast=False):
    torch.manual_seed(0)
    model = MODELS[name]().to(dtype).eval()
    updates = OPTIMIZERS["adamw"](model.parameters())
    ids, x, labels = torch.randint(0, 96, (2, 5)), torch.randn(*SHAPES.get(name, (1,))), torch.randint(0, 3, (5,))

    def step():
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                is_text = name in ("rwkv4", "llama")
                loss = model(ids[:, :-1], ids[:, 1:]) if is_text else F.cross_entropy(model(x.to(dtype)), labels)
            loss.backward()
            updates.step()

    return record(step, values="stats")


@pytest.mark.parametrize("name", MODELS)
def test_other_dtypes_do_not_part(name):
    plain = of_dtype(name, torch.float32)
    others = [of_dtype(name, torch.float64), of_dtype(name, torch.bfloat16), of_dtype(name, torch.float32, True)]
    for other in others:
        found = nbkit.compare_values(plain, other)
        assert found.attrs["first_divergence"] is None, found.attrs["first_divergence"]
        assert (found["action"] == "match").sum() > 0.9 * found["left_id"].notna().sum() > 50
        assert "cast" in set(found["relation"])


def test_a_saved_trace_compares_like_the_one_that_was_saved(tmp_path):
    left, right = between(F.gelu), between(F.relu)
    loaded = nbkit.load(right.save(tmp_path / "right"))
    assert nbkit.compare_values(left, loaded).equals(nbkit.compare_values(left, right))


def test_traces_that_cannot_be_compared_are_refused():
    relu = between(F.relu)
    with pytest.raises(nbkit.OptionError, match=r"The right trace holds no value statistics.*values='stats'"):
        nbkit.compare_values(relu, record(lambda: torch.ones(3).exp()))
    with pytest.raises(nbkit.OptionError, match="The left trace holds no value statistics"):
        nbkit.compare_values(nbkit.Trace(), relu)
    with pytest.raises(nbkit.OptionError, match="The two traces share no op"):
        nbkit.compare_values(
            record(lambda: torch.ones(3), values="stats"), record(lambda: torch.eye(2), values="stats")
        )
