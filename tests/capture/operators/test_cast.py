"""opcast: only the chosen ops compute in another dtype, with all their effects; the dry run changes nothing."""

import copy

import pytest
import torch
from torch import nn

import nbkit
from nbkit import OptionError
from nbkit.capture.operators.dtype_map import dtype_map
from nbkit.capture.operators.rounding import lost, rounded
from tests.capture.diff.planted import Planted
from tests.capture.identical import each_step, left_by
from tests.capture.models import bits, mlp, train_step


def product(x, y):
    return x @ y


def test_a_chosen_op_computes_in_that_dtype_and_its_result_comes_back():
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    with nbkit.opcast("bfloat16", ops="mm") as trace:
        out = product(x, y).exp()
    assert torch.equal(out, (x.bfloat16() @ y.bfloat16()).float().exp())
    assert trace.replaced[["op", "ran"]].to_numpy().tolist() == [["aten.mm.default", "bfloat16"]]


def test_in_place_ops_write_back_through_the_cast():
    """B3: fp16 x.add_(1) in float32; SGD moves fp16 weights."""
    x = torch.ones(3, dtype=torch.float16)
    weight = nn.Parameter(torch.ones(3, dtype=torch.float16))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    with nbkit.opcast("float16->float32") as trace:
        x.add_(1)
        weight.pow(2).sum().backward()
        optimizer.step()
    assert x.tolist() == [2, 2, 2] and x.dtype == torch.float16
    assert weight.tolist() == [0, 0, 0] and (weight.dtype, weight.grad.dtype, weight.is_leaf) == (
        torch.float16,
    ) * 2 + (True,)
    assert set(trace.replaced["ran"]) == {"float32"}


def test_results_have_the_dtype_of_promotion():
    """B4: fp16 * fp32 stays fp32; a number in a 0-dim tensor does not promote; an explicit dtype holds."""
    half, full = torch.ones(2, dtype=torch.float16), torch.ones(2)
    cases = [
        lambda: half * full,
        lambda: half * torch.tensor(2.0),
        lambda: half.sum(dtype=torch.float32),
        lambda: half.sum(),
        lambda: torch.where(half > 0, half, full),
        lambda: half.argmax(),
        lambda: torch.complex(full, full) * 2,
        lambda: torch.cat([half, full]),
        lambda: torch.var_mean(half)[0],
    ]
    for case in cases:
        for dtype in ("float32", "bfloat16", "float64", "float16->bfloat16"):
            with nbkit.opcast(dtype):
                out = case()
            assert out.dtype == case().dtype and out.device == case().device


@pytest.mark.parametrize("dtype", ["float64", "float32->float64"])
def test_complex_numbers_compute_in_the_dtype_of_their_parts(dtype):
    x, y = torch.randn(8, 8, dtype=torch.complex64), torch.randn(8, 8, dtype=torch.complex64)
    with nbkit.opcast(dtype) as trace:
        out = product(x, y)
    assert torch.equal(out, (x.to(torch.complex128) @ y.to(torch.complex128)).to(torch.complex64))
    assert trace.replaced[["op", "ran"]].to_numpy().tolist() == [["aten.mm.default", "float64"]]


def test_graphs_and_named_tuples_are_kept():
    """B5, B6."""
    x = torch.randn(4, 4, dtype=torch.bfloat16, requires_grad=True)
    with nbkit.opcast("float32"):
        values = (x * 2).sort().values
        values.sum().backward()
    assert values.grad_fn is not None and x.grad.dtype == torch.bfloat16 and x.grad.eq(2).all()


def test_views_casts_and_copies_are_left_alone():
    x = torch.randn(4, 6)
    with nbkit.opcast("bfloat16") as trace:
        kept = x.clone().t().contiguous().view(4, 6).to(torch.float64).to(torch.float32)
    assert torch.equal(kept.view(6, 4).t(), x) and not len(trace.replaced)
    assert trace.meta["skipped"]["not cast: casts and copies"] >= 3


def test_calls_without_a_dtype_that_is_cast_are_left_alone_and_counted():
    x, half = torch.ones(2), torch.ones(2, dtype=torch.float16)
    with nbkit.opcast("float16->float32", ops="exp") as trace:
        x.exp(), half.exp(), x.double().exp()
    assert trace.replaced["call"].tolist() == [1]
    assert trace.meta["skipped"]["not cast: no inputs of a dtype that is cast"] == 2


def test_three_steps_end_with_correct_parameters():
    """A step in float64 whose ops compute in float64 anyway: casts to the same dtype's wider one lose nothing."""

    def trained(tool):
        torch.manual_seed(0)
        model = mlp().to(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with tool:
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(4, 6, dtype=torch.bfloat16)).pow(2).mean().backward()
                optimizer.step()
        return list(model.parameters())

    in_float32, in_float64 = trained(nbkit.opcast("float32")), trained(nbkit.opcast("float64"))
    for one, other in zip(in_float32, in_float64, strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one, other, rtol=0.02, atol=1e-3)


@each_step
def test_the_dry_run_computes_the_same_bits(name, dtype):
    tool = nbkit.opcast("float16" if dtype == "bfloat16" else "bfloat16", dry_run=True)
    assert left_by(name, dtype, tool) == left_by(name, dtype)
    assert len(tool.trace.casts)


def test_the_dry_run_says_what_casting_does_to_each_result():
    x, y = torch.randn(16, 16), torch.randn(16, 16)
    with nbkit.opcast("bfloat16", dry_run=True, ops="mm") as trace:
        product(x, y)
    row = trace.casts.iloc[0]
    right = x.double() @ y.double()
    assert row["error"] == pytest.approx(float(((x.bfloat16() @ y.bfloat16()).double() - right).norm() / right.norm()))
    assert row["own_error"] == pytest.approx(float(((x @ y).double() - right).norm() / right.norm()))


def test_an_op_without_a_kernel_in_that_dtype_is_told_by_the_dry_run():
    with nbkit.opcast("float16", dry_run=True, ops="linalg_inv_ex,exp") as trace:
        torch.linalg.inv_ex(torch.eye(3)).inverse.exp()
    failed, done = trace.casts.itertuples()
    assert (failed.op, failed.dtype) == ("aten.linalg_inv_ex.default", "float16")
    assert failed.message.startswith("it does not run in this dtype: ") and failed.error != failed.error
    assert (done.op, done.message != done.message, done.error < 1e-3) == ("aten.exp.default", True, True)
    assert trace.meta["cast_ops"] == 2
    assert not [reason for reason in trace.meta["skipped"] if "could not be cast" in reason]


def test_of_integer_and_empty_results_the_dry_run_says_nothing():
    with nbkit.opcast("bfloat16", dry_run=True, ops="sort,exp") as trace:
        torch.randn(3, 4).sort(), torch.empty(0).exp()
    assert trace.casts[["op", "position"]].to_numpy().tolist() == [["aten.sort.default", 0]]
    assert not [reason for reason in trace.meta["skipped"] if "could not be cast" in reason]


def test_indices_stay_indices_in_the_dry_run():
    table, ids = torch.tensor([[1.0], [257.0]]), torch.tensor([1, 0, 1])
    with nbkit.opcast("bfloat16", dry_run=True, ops="index_select") as trace:
        table.index_select(0, ids)
    assert trace.casts["message"].isna().all()
    assert trace.casts["error"].tolist() == [pytest.approx((2 / (2 * 257**2 + 1)) ** 0.5)]


def test_a_dtype_that_a_call_names_holds_in_the_dry_run():
    x = torch.ones(257, dtype=torch.float16)  # bfloat16 has no 257
    with nbkit.opcast("float16->bfloat16", dry_run=True, ops="sum") as trace:
        x.sum(dtype=torch.float32), x.sum()
    assert trace.casts["error"].tolist() == [0.0, pytest.approx(1 / 257)]


def test_what_an_op_writes_to_is_named_by_its_place_in_the_call():
    x, y, z = torch.ones(2), torch.ones(3), torch.ones(3)
    with nbkit.opcast("bfloat16", dry_run=True, ops="_foreach_add_,add") as trace:
        torch._foreach_add_([x, y], 1.0)
        torch.add(y, z)
    assert trace.casts[["role", "position"]].to_numpy().tolist() == [["input", 0], ["input", 1], ["output", 0]]
    assert x.tolist() == [2, 2]


def test_a_call_that_the_dry_run_cannot_judge_is_counted_with_the_reason():
    library, calls = torch.library.Library("nbkit_cast_once", "DEF"), list[int]()

    def once(x):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("no more")
        return x * 2

    library.define("once(Tensor x) -> Tensor")
    library.impl("once", once, "CompositeExplicitAutograd")
    try:
        with nbkit.opcast("bfloat16", dry_run=True, ops="nbkit_cast_once.*") as trace:
            out = torch.ops.nbkit_cast_once.once(torch.ones(3))
    finally:
        library._destroy()
    assert out.tolist() == [2, 2, 2] and not len(trace.casts)
    assert trace.meta["skipped"]["not cast: could not be cast: nbkit_cast_once.once.default (no more)"] == 1


def test_progress_of_the_dry_run_says_how_many_calls_were_cast():
    tool = nbkit.opcast("bfloat16", dry_run=True, ops="mm")
    (observer,) = tool.observers
    assert observer.progress() == "0 calls cast"
    with tool:
        product(torch.ones(2, 3), torch.ones(3, 2))
        assert observer.progress() == "1 call cast"


def test_eigenvectors_of_either_sign_are_right_in_the_dry_run():
    def turned(func, args, out):
        return out[0], -out[1]

    x, tool = torch.diag(torch.arange(1.0, 7.0)) + 0.1, nbkit.opcast("float64", dry_run=True, ops="eigh")
    with Planted("aten._linalg_eigh.default", turned), tool as trace:
        torch.linalg.eigh(x)
    assert trace.casts["position"].tolist() == [0, 1]
    assert (trace.casts["own_error"] < 1e-4).all() and (trace.casts["error"] < 1e-9).all()


def test_the_effect_on_the_loss_is_error_times_gradient():
    torch.manual_seed(0)
    model, x = mlp().eval().double(), torch.randn(5, 6, dtype=torch.float64)
    loss = lambda: model(x).pow(2).mean()  # noqa: E731
    with nbkit.opcast("bfloat16", dry_run=True, ops="addmm,tanh") as trace:
        bare = loss()
        bare.backward()
    for row in trace.casts[trace.casts["phase"] == "forward"].itertuples():
        number = trace.casts["op"][: row.Index].eq(row.op).sum()
        with nbkit.opcast("bfloat16", ops=row.op, calls=int(number)):
            moved = float(loss().detach() - bare.detach())
        assert moved == pytest.approx(row.loss_change, rel=0.1, abs=1e-6)


def test_what_a_dtype_cannot_hold_is_counted():
    values = torch.tensor([1e-9, 1.0, 1.0001, 7e4])
    assert lost([values], torch.float16, None) == {
        "overflow_fraction": 0.25,
        "underflow_fraction": 0.25,
        "collapsed_fraction": 0.25,
    }
    assert lost([values], torch.float64, None)["collapsed_fraction"] == 0


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_scales_bring_values_into_range(dtype):
    values = torch.cat([torch.full((128,), 1e-9), torch.full((128,), 1e6)]).reshape(1, 256)
    none, tensor, block = (rounded(values, dtype, scaling) for scaling in ("none", "tensor", "block"))
    assert none.max() == torch.finfo(dtype).max
    assert tensor.max() == pytest.approx(1e6) and (tensor[0, :128] == 0).all()
    assert torch.allclose(block, values)
    shares = [lost([values], dtype, scaling)["underflow_fraction"] for scaling in ("tensor", "block")]
    assert shares == [0.5, 0.0]


def test_float8_has_a_row_per_scaling():
    with nbkit.opcast("float8_e4m3fn", dry_run=True, ops="mm") as trace:
        product(torch.randn(4, 200), torch.randn(200, 4))
    assert trace.casts["scaling"].tolist() == ["none", "tensor", "block"]
    assert (trace.casts["error"] < 0.1).all()


@pytest.mark.parametrize("dtype", ["float33", "int8", "float16->", "", "float16->float32->bfloat16", {}, 3])
def test_what_is_no_dtype_is_refused(dtype):
    with pytest.raises(OptionError):
        nbkit.opcast(dtype)


def test_float8_is_for_the_dry_run():
    with pytest.raises(OptionError, match="dry_run=True"):
        nbkit.opcast("float8_e4m3fn")


def test_a_map_with_stray_spaces_is_read():
    """Behavioral case 4."""
    expected = {torch.float32: torch.float16, torch.float64: torch.float16}
    assert dtype_map(" torch.float32 ->torch.float16, torch.float64 -> torch.float16").items() >= expected.items()


def test_only_chosen_ops_change(monkeypatch):
    """Every other op of the step gives the bits that it gives bare."""
    torch.manual_seed(0)
    model, x = mlp().eval(), torch.randn(5, 6)
    with nbkit.opcast("bfloat16", ops="tanh", phases="forward") as trace:
        out = model(x)
    hidden = model[:4](x)
    assert bits([out]) == bits([model[5:](torch.tanh(hidden.bfloat16()).float())])
    assert trace.replaced["op"].tolist() == ["aten.tanh.default"]


def test_a_whole_step_runs_in_either(monkeypatch):
    for tool in (nbkit.opcast("bfloat16"), nbkit.opcast("float64"), nbkit.opcast({"float32": torch.float16})):
        with tool as trace:
            train_step("mlp")
        assert trace.complete and len(trace.replaced)


NORMS = {
    "native_layer_norm": (nn.LayerNorm(8), (2, 8)),
    "native_group_norm": (nn.GroupNorm(2, 4), (2, 4, 3)),
    "native_batch_norm": (nn.BatchNorm1d(4), (3, 4)),
    "rms_norm": (nn.RMSNorm(8), (2, 8)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_a_norm_that_is_cast_has_a_backward_pass(name, dtype):
    """What a norm notes for its backward pass is of the dtype that the kernel of this device notes."""
    module, shape = NORMS[name]
    module, x = copy.deepcopy(module).to(dtype), torch.randn(shape, dtype=dtype, requires_grad=True)
    with nbkit.opcast("float32", ops=name) as trace:
        module(x).square().sum().backward()
    assert set(trace.replaced["ran"]) == {"float32"} and len(trace.replaced)
    y = x.detach().float().requires_grad_()
    copy.deepcopy(module).float()(y).square().sum().backward()
    assert x.grad.dtype == dtype
    torch.testing.assert_close(x.grad.float(), y.grad, rtol=0.05, atol=0.2)


def test_each_call_says_the_dtype_that_it_ran_in():
    half, single = torch.ones(4, 4, dtype=torch.float16), torch.ones(4, 4)
    with nbkit.opcast("float16->float32,float32->float64", ops="mm") as trace:
        half @ half, single @ single
    assert trace.replaced["ran"].tolist() == ["float32", "float64"]
