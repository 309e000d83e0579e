"""Tensors of every layout and kind are recorded, or passed through and counted; the step's results stay the same."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.nn.attention.flex_attention import flex_attention

import nbkit
from tests.capture.models import aten, bits, in_any_mode, record, recorded_ops, seen_ops, tensor_rows


def csr():
    return torch.eye(3).to_sparse_csr()


def coo():
    return torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()


def nested():
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])


def jagged():
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)


def quantised():
    return torch.quantize_per_tensor(torch.tensor([0.0, 0.5, 1.0]), 0.5, 0, torch.qint8)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("values", [None, "stats"])
@pytest.mark.parametrize(
    ("make", "use", "dtype", "shape", "size_bytes"),
    [
        (coo, lambda t: torch.sparse.mm(t * 2, torch.ones(2, 2)), "float32", "[2, 2]", 2 * (16 + 4)),
        (csr, lambda t: t @ torch.ones(3, 1), "float32", "[3, 3]", 4 * 8 + 3 * 8 + 3 * 4),
        (nested, lambda t: t * 2, "float32", "[2, null, 3]", 72),
        (quantised, lambda t: t.dequantize(), "qint8", "[3]", 3),
        (lambda: torch.ones(3).to(torch.float8_e4m3fn), lambda t: t.float(), "float8_e4m3fn", "[3]", 3),
        (lambda: torch.tensor([1 + 1j, 2 - 1j]), lambda t: t * t.conj(), "complex64", "[2]", 16),
        (lambda: torch.empty(0, 4), lambda t: t + 1, "float32", "[0, 4]", 0),
        (lambda: torch.ones(3, device="meta"), lambda t: t + 1, "float32", "[3]", 12),
        (lambda: torch.ones(3, dtype=torch.bool), lambda t: ~t, "bool", "[3]", 3),
        (lambda: torch.tensor(5, dtype=torch.uint16), lambda t: t.to(torch.int32), "uint16", "[]", 2),
        (lambda: torch.ones(2, 2).to_mkldnn(), lambda t: t.to_dense(), "float32", "[2, 2]", None),
    ],
)
def test_a_tensor_of_every_kind_is_described(make, use, dtype, shape, size_bytes, values):
    """Defects B10, B11 and B13."""
    t, outs = make(), []
    trace = record(lambda: outs.append(use(t)), values=values)
    row = trace.tensors[trace.tensors["role"] == "input"].iloc[0]
    assert trace.complete
    assert (row["dtype"], row["shape"]) == (dtype, shape)
    assert size_bytes is None or row["size_bytes"] == size_bytes
    assert in_any_mode(recorded_ops(trace)) == in_any_mode(seen_ops(lambda: use(t)))


def test_strides_are_null_where_a_layout_has_none():
    trace = record(lambda: coo() * 2)
    rows = tensor_rows(trace, "aten.mul", "output")
    assert rows["stride"].isna().all()
    assert rows["storage_id"].isna().all()


def test_devices_of_meta_tensors():
    """Found from arguments and from device=."""
    trace = record(lambda: F.relu(torch.ones(2, device="meta")))
    assert trace.ops["device"].tolist() == ["meta"] * len(trace.ops)
    assert trace.meta["devices"] == ["meta"]


def test_a_jagged_step_passes():
    t = jagged()
    trace = record(lambda: (t * 2).sum())
    assert trace.complete


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: torch.func.vmap(f)(x),
        lambda f, x: torch.func.grad(lambda y: f(y).sum())(x),
        lambda f, x: torch.func.vmap(torch.func.grad(lambda y: f(y).sum()))(x),
        lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
        lambda f, x: torch.func.jacrev(f)(x),
        lambda f, x: torch.func.functionalize(f)(x),
        lambda f, x: torch.func.vmap(lambda y: F.dropout(y, 0.5), randomness="different")(x),
    ],
)
def test_transformed_functions_compute_the_same(transform):
    """Defect B12."""
    x, outs = torch.randn(3, 2), []

    def step():
        torch.manual_seed(0)
        outs.append(transform(lambda y: y.sin() * y, x))

    seen = seen_ops(step)
    trace = record(step, values="stats")
    assert bits(outs[:1]) == bits(outs[1:])
    assert recorded_ops(trace) == seen


def test_fake_tensors_pass():
    def step():
        with FakeTensorMode():
            x = torch.ones(2, 3, requires_grad=True)
            torch.nn.Linear(3, 4)(x).sum().backward()
            shapes.append(x.grad.shape)

    shapes = []
    trace = record(step, values="stats")
    assert shapes == [(2, 3)]
    assert trace.complete
    assert len(aten(trace)) > 0


def test_a_fake_mode_around_the_recording():
    with FakeTensorMode():
        x = torch.ones(2, 3)
        trace = record(lambda: x @ x.t(), values="stats")
    assert "aten.mm.default" in recorded_ops(trace)
    assert trace.tensors["mean"].isna().all()


class Tagged(Tensor):
    """Is a subclass with __torch_function__: what it does must be seen as before."""

    seen: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_with_torch_function_sees_what_it_sees_bare():
    x = torch.ones(3).as_subclass(Tagged)

    def seen():
        Tagged.seen.clear()
        out = (x + 1).exp().sum()
        return type(out), list(Tagged.seen)

    bare, traced = seen(), []
    trace = record(lambda: traced.append(seen()), values="stats")
    assert traced == [bare]
    assert recorded_ops(trace) == {"aten.add.Tensor": 1, "aten.exp.default": 1, "aten.sum.default": 1}


class Wrapped(Tensor):
    """Holds a plain tensor, as a subclass with __torch_dispatch__."""

    @staticmethod
    def __new__(cls, inner):
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [arg.inner if isinstance(arg, Wrapped) else arg for arg in args]
        return Wrapped(func(*plain, **(kwargs or {})))


@pytest.mark.parametrize("values", [None, "stats"])
def test_a_subclass_with_torch_dispatch_passes(values):
    inner = torch.tensor([1.0, 2.0])
    outs = []
    trace = record(lambda: outs.append(Wrapped(inner) * 3 + 1), values=values)
    assert type(outs[0]) is Wrapped
    assert outs[0].inner.tolist() == [4, 7]
    assert {"aten.mul.Tensor", "aten.add.Tensor"} <= set(recorded_ops(trace))


class Rude(Tensor):
    """Refuses every query, as a subclass."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not Rude.known:
            raise RuntimeError("asked")
        return torch.ones(1)

    known = torch.exp


def test_a_subclass_that_refuses_questions_is_not_asked():
    x = torch.ones(3).as_subclass(Rude)
    trace = record(lambda: torch.exp(x), values="stats")
    assert trace.complete
    with pytest.raises(RuntimeError, match="asked"):
        record(lambda: torch.sin(x))


def test_cond_runs_and_is_counted():
    x, outs = torch.ones(3), []
    step = lambda: outs.append(torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)))  # noqa: E731
    trace = record(step)
    assert torch.equal(outs[0], x.sin())
    if trace.meta["recorder"] == "observer":
        assert recorded_ops(trace)["aten.sin.default"] == 1
        return
    assert recorded_ops(trace)["higher_order.cond"] == 1
    assert trace.meta["skipped"]["ops inside cond: torch runs them below the recorder"] == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_flex_attention_runs_and_is_counted():
    q, outs = torch.randn(1, 1, 16, 8), []
    bare = flex_attention(q, q, q)
    trace = record(lambda: outs.append(flex_attention(q, q, q)))
    assert bits(outs) == bits([bare])
    if trace.meta["recorder"] == "observer":
        assert recorded_ops(trace)["aten.bmm.default"] == 2
    else:
        assert any("flex_attention" in reason for reason in trace.meta["skipped"])


def test_inference_tensors_conj_views_and_named_tensors():
    def step():
        with torch.inference_mode():
            torch.ones(2).view(2, 1).add_(1)
        z = torch.tensor([1 + 2j])
        outs.append(torch.view_as_real(z.conj().resolve_conj()))
        outs.append(z.conj().imag)

    outs = []
    trace = record(step, values="stats")
    assert outs[0].tolist() == [[1, -2]]
    assert outs[1].tolist() == [-2]
    assert trace.complete


def test_embedding_with_max_norm_changes_its_weight():
    """The write is seen, the backward pass works, requires_grad survives .to(half)."""
    embedding = torch.nn.Embedding(4, 3, max_norm=0.1)
    trace = record(lambda: embedding(torch.tensor([1, 2])).sum().backward())
    assert embedding.weight[1].norm() <= 0.1001
    assert embedding.weight.grad[1].tolist() == [1, 1, 1]
    assert "aten.embedding_renorm_.default" in recorded_ops(trace)
    assert torch.ones(2, requires_grad=True).to(torch.half).requires_grad


def test_what_a_recorder_asks_of_a_sparse_tensor_is_no_op_of_another_around_it():
    x = csr()
    with nbkit.optrace() as outer, nbkit.optrace() as inner:
        x @ torch.ones(3, 1)
    assert outer.ops["op"].tolist() == inner.ops["op"].tolist()
    assert recorded_ops(outer) == seen_ops(lambda: x @ torch.ones(3, 1))


def test_a_tensor_that_cannot_be_described_is_counted():
    class Secretive(torch.Tensor):
        @property
        def dtype(self):
            raise ValueError("none of your business")

    x = torch.ones(2).as_subclass(Secretive)
    trace = record(lambda: x * 2)
    assert any(reason.startswith("tensor not described: Secretive") for reason in trace.meta["skipped"])
