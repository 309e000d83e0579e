"""What the shadow cannot follow begins anew and is said; what it follows is let go with the step's tensors."""

import gc
from weakref import ref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.library import _scoped_library

import nbkit
from nbkit.capture.replay import op_traits, substitutes
from nbkit.capture.replay.isolated import isolated
from nbkit.errors import OptionError
from tests.capture.diff.shadow.runs import against, shadowed


def anew(trace):
    return {
        reason.removeprefix("shadow began anew: "): count
        for reason, count in trace.meta["skipped"].items()
        if reason.startswith("shadow began anew: ")
    }


def test_memory_seen_as_another_dtype():
    def step():
        x = torch.ones(8).exp()
        return x.view(torch.float16).neg(), x.neg()

    trace = against(step)
    assert anew(trace) == {"memory seen as another dtype": 2}
    assert trace.diffs["total_error"].iloc[-1] == 0
    assert trace.meta["notes"][0].startswith("The shadow began anew from the step's values at 2 places")


def test_draws_are_the_steps_own():
    torch.manual_seed(0)
    with shadowed() as shadow_of:
        x = torch.rand(50)
        y = x.exp()
        kept, mask = torch.ops.aten.native_dropout(y, 0.3, True)
        normal = torch.normal(y, 1.0)
        shadow = [shadow_of(one) for one in (x, kept, normal)]
    assert torch.equal(shadow[0], x.double()) and torch.equal(shadow[2], normal.double())
    assert torch.allclose(shadow[1], x.double().exp() * mask / 0.7, rtol=1e-15)
    assert not torch.equal(shadow[1], kept.double())


def test_draws_by_values_are_counted():
    trace = against(lambda: torch.normal(torch.ones(3).exp(), 1.0))
    assert list(anew(trace)) == ["aten.normal.Tensor_float draws by values, so the step's own draw is taken"]


def test_sparse_gradients_are_counted():
    embedding = nn.Embedding(10, 4, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)

    def step():
        embedding(torch.tensor([1, 2, 1])).pow(2).sum().backward()
        optimizer.step()

    assert "sparse_coo tensors have no shadow, so the step's own are read" in anew(against(step))


def test_an_op_without_a_float64_kernel_runs_in_a_narrower_dtype_and_says_so():
    x, scales = torch.randn(16, 16), torch.rand(16)
    trace = against(lambda: torch._weight_int8pack_mm(x, (x * 9).to(torch.int8), scales).relu())
    assert trace.meta["skipped"]["shadow in a narrower dtype: aten._weight_int8pack_mm.default"] == 1
    assert trace.meta["diverged_integers"] == 0
    assert anew(trace) == {}
    assert trace.diffs["total_error"].max() < 1e-5


def test_an_op_without_a_kernel_there_is_followed_by_what_stands_in_for_it(monkeypatch, request):
    """As fused attention on CUDA, whose notes for the backward op nobody else has."""
    op = "_scaled_dot_product_flash_attention_for_cpu"
    monkeypatch.setitem(substitutes.SUBSTITUTES, op, substitutes.attention)
    monkeypatch.setitem(substitutes.SUBSTITUTES, f"{op}_backward", substitutes.attention_backward)
    monkeypatch.setitem(op_traits.VALUES, op, 1)
    op_traits.traits_of.cache_clear()
    request.addfinalizer(op_traits.traits_of.cache_clear)
    inputs = [torch.randn(2, 4, 9, 8) for _ in range(3)]

    def step(dtype, seen):
        q, k, v = (one.to(dtype).requires_grad_() for one in inputs)
        out = F.scaled_dot_product_attention(q.exp(), k, v, is_causal=True)
        out.square().sum().backward()
        return [seen(one) for one in (out, q.grad, k.grad, v.grad)]

    true = step(torch.float64, lambda one: one)
    with shadowed() as shadow_of:
        shadows = step(torch.float32, shadow_of)
    assert all(torch.allclose(*pair, rtol=1e-10, atol=1e-12) for pair in zip(shadows, true, strict=True))
    assert anew(against(lambda: step(torch.float32, id))) == {}


def grown(x, factor, dtype=torch.float32):
    if torch.float64 in (x.dtype, dtype):
        raise ValueError("float32 is wanted")
    return (x.exp() * factor).to(dtype)


def grow_(x, factor):
    x.copy_(grown(x, factor))


def test_an_op_without_a_float64_kernel_is_followed_in_float32_where_the_step_is_in_bfloat16():
    x, runs = torch.rand(8).bfloat16(), []

    def once(x):
        if runs:
            raise ValueError("once is enough")
        runs.append(1)
        return x.exp()

    with _scoped_library("nbkit_shadows", "DEF") as library:
        library.define("grown(Tensor x, int factor, ScalarType dtype) -> Tensor")
        library.define("grow_(Tensor(a!) x, int factor) -> ()")
        library.define("once(Tensor x) -> Tensor")
        library.impl("grown", grown, "CPU")
        library.impl("grow_", grow_, "CPU")
        library.impl("once", once, "CPU")
        with shadowed() as shadow_of:
            made, written = torch.ops.nbkit_shadows.grown(x.exp(), 3, torch.bfloat16), x.exp()
            torch.ops.nbkit_shadows.grow_(written, 3)
            shadows = shadow_of(made), shadow_of(written)
        trace = against(lambda: torch.ops.nbkit_shadows.once(x.exp()))
    for shadow in shadows:
        torch.testing.assert_close(shadow, x.double().exp().exp() * 3, rtol=1e-6, atol=0)
    assert anew(trace) == {"nbkit_shadows.once.default cannot run on cpu:float64 (ValueError)": 1}


def test_what_the_shadow_cannot_take_over_is_counted():
    """In float64 the two numbers are not the same, and so are two of them unique."""
    trace = against(lambda: (torch.tensor([0.0, 1.0]) + 1e8).unique())
    assert anew(trace) == {"aten._unique2.default gives another shape than in the step": 1}


def test_the_shadow_of_what_a_higher_order_op_makes_begins_anew():
    x, outs = torch.rand(3), []
    trace = against(lambda: outs.append(torch.ops.higher_order.cond(x.sum() > 0, torch.sin, torch.cos, (x,)).exp()))
    assert torch.equal(outs[0], x.sin().exp())
    assert anew(trace) == {"higher-order ops": 1}
    assert trace.diffs["total_error"].iloc[-1] < 1e-6


def test_vectors_without_direction_have_that_of_the_step():
    def step():
        x = torch.rand(6, 6)
        return torch.linalg.eigh(x + x.T).eigenvectors.exp(), torch.linalg.svd(x)[0].exp()

    for seed in range(5):
        torch.manual_seed(seed)
        trace = against(step)
        assert trace.diffs["total_error"].max() < 1e-4
        assert trace.meta["first_divergence"] is None


def test_integers_are_the_steps_own_and_counted_where_they_part():
    """In float32 the number after 100,000,000 is 100,000,008."""

    def step():
        mask = torch.full((4,), 1e8) + 1 > 1e8
        return torch.where(mask, 5.0, 7.0).exp()

    trace = against(step)
    assert trace.meta["diverged_integers"] == 1
    assert trace.diffs[["op", "total_error"]].to_numpy().tolist()[2] == ["aten.gt.Scalar", 1.0]
    assert trace.diffs["total_error"].iloc[-1] < 1e-6
    assert "1 result of integers or bools came out otherwise" in trace.meta["notes"][0]


def test_tensors_without_values_have_no_shadow():
    trace = against(lambda: torch.ones(3, device="meta").exp())
    assert (trace.meta["followed_ops"], anew(trace)) == (0, {})


def test_resized_and_replaced_memory():
    with shadowed() as shadow_of:
        x = torch.ones(4).exp()
        x.resize_(6)
        x[4:] = 0.5
        p = nn.Parameter(torch.zeros(2))
        p.data = x[:2]
        q = p * 3
        shadows = [shadow_of(one) for one in (x, q)]
    exact = torch.ones(4).double().exp()
    assert torch.equal(shadows[0], torch.cat([exact, torch.full((2,), 0.5).double()]))
    assert torch.equal(shadows[1], exact[:2] * 3)


def test_two_results_of_an_op_may_share_memory():
    """As the fused projections of attention do."""

    def halves(x):
        return (x * 3).chunk(2)

    with _scoped_library("nbkit_shadows", "DEF") as library:
        library.define("halves(Tensor x) -> (Tensor, Tensor)")
        library.impl("halves", halves, "CPU")
        with shadowed() as shadow_of:
            first, second = torch.ops.nbkit_shadows.halves(torch.ones(6).exp())
            shadows = shadow_of(first), shadow_of(second)
    exact = torch.ones(3).double().exp() * 3
    assert torch.equal(shadows[0], exact) and torch.equal(shadows[1], exact)


def test_a_shadow_is_let_go_with_its_tensor():
    verb = nbkit.opdiff(against="cpu:float64")
    with verb:
        x = torch.ones(1000)
        kept = x.exp()
        for _ in range(20):
            kept = kept.mul(1.1)
        with isolated():
            gc.collect()
            held = [shadow.line.numel() for shadow in verb.observers[0].against.mode.shadows.shadows.values()]
    assert held == [1000, 1000]


def test_nothing_is_held_afterwards():
    verb = nbkit.opdiff(against="cpu:float64")
    with verb as trace:
        x = torch.ones(1000).exp()
        mode, line = (
            ref(verb.observers[0].against.mode),
            ref(next(iter(verb.observers[0].against.mode.shadows.shadows.values())).line),
        )
    held = ref(x.untyped_storage())
    del x
    gc.collect()
    assert (mode(), line(), held()) == (None, None, None)
    assert trace.diffs["op"].tolist() == ["aten.ones.default", "aten.exp.default"]


def test_the_shadow_so_far_is_compared_after_an_exception():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), nbkit.opdiff(against="cpu") as trace:
        torch.ones(3).exp() @ torch.ones(2, 2)
    assert trace.diffs["error_class"].tolist() == ["clean"] * 3
    assert not trace.complete


@pytest.mark.parametrize("other", ["gpu", "cuda:77", "cpu:float63", "no/such/trace"])
def test_an_unknown_run_is_refused_in_one_sentence(other):
    with pytest.raises(OptionError, match="is neither a saved trace nor a device that can be used") as error:
        nbkit.opdiff(against=other)
    assert "\n" not in str(error.value)


def test_filters_leave_the_shadow_whole():
    x = torch.ones(3)
    trace = against(lambda: x.exp().sin().exp(), ops="aten.sin")
    assert trace.meta["followed_ops"] == 3
    assert trace.diffs["total_error"].iloc[0] > 0
