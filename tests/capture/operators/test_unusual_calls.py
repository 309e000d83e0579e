"""opfallback and the others take sparse tensors and ops that the CPU lacks, and leave tensors without values alone."""

import pytest
import torch

import nbkit

aten = torch.ops.aten


def test_sparse_tensors_run_on_the_cpu_as_well():
    sparse = torch.sparse_coo_tensor([[0, 2, 2], [1, 0, 0]], [1.0, 2.0, 0.5], (3, 3), check_invariants=True)
    with nbkit.opfallback(ops="abs,mul") as trace:
        made = sparse.coalesce().abs() * 3.0
    assert trace.replaced["op"].tolist() == ["aten.abs.default", "aten.mul.Tensor"]
    assert made.layout is torch.sparse_coo and made.to_dense().tolist() == [[0, 3, 0], [0, 0, 0], [7.5, 0, 0]]


def test_a_sparse_result_comes_back_in_its_dtype():
    sparse = torch.tensor([[0.0, 0.5], [0.25, 0.0]]).to_sparse()
    with nbkit.opcast("float64", ops="sin") as trace:
        out = sparse.sin()
    assert trace.replaced["ran"].tolist() == ["float64"]
    assert (out.dtype, out.layout) == (torch.float32, torch.sparse_coo)
    assert torch.equal(out.to_dense(), sparse.to_dense().double().sin().float())


@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        (lambda path: nbkit.opfallback(), "not replaced"),
        (lambda path: nbkit.opcast("float64"), "not cast"),
        (lambda path: nbkit.opstable(), "not run again"),
        (lambda path: nbkit.opcapture(path / "calls"), "not captured"),
    ],
    ids=["opfallback", "opcast", "opstable", "opcapture"],
)
def test_tensors_without_values_or_one_shape_and_subclasses_are_counted_and_run_as_they_are(verb, reason, tmp_path):
    class Own(torch.Tensor):
        pass

    x, nested = torch.ones(3, device="meta"), torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])
    with verb(tmp_path) as trace:
        assert x.sin().is_meta
        assert nested.neg().is_nested
        torch.ones(2).as_subclass(Own).exp()
    assert trace.meta["skipped"][f"{reason}: tensors without values (meta, fake)"] == 1
    assert trace.meta["skipped"][f"{reason}: nested tensors, which have no one shape"] == 1
    assert trace.meta["skipped"][f"{reason}: tensor subclasses"] == 1


def test_empty_tensors_run_elsewhere_with_their_shape_and_strides():
    x, half = torch.empty(3, 0, 2).transpose(0, 2), torch.empty(0, 3, dtype=torch.float16)
    with nbkit.opfallback(ops="exp,mm") as trace:
        out, product = x.exp(), torch.empty(0, 3) @ torch.ones(3, 2)
    with nbkit.opcast("float32", ops="exp") as cast:
        assert (half.exp().dtype, half.exp().shape) == (torch.float16, (0, 3))
    assert (out.shape, out.stride(), product.shape) == (x.shape, x.exp().stride(), (0, 2))
    assert (len(trace.replaced), len(cast.replaced)) == (2, 2)


def test_results_that_are_no_tensors_stay_as_they_are():
    library = torch.library.Library("nbkit_counted", "DEF")
    library.define("counted(Tensor x) -> (Tensor, int)")
    library.impl("counted", lambda x: (x * 2, len(x)), "CompositeExplicitAutograd")
    try:
        with nbkit.opfallback(ops="nbkit_counted.*") as trace:
            out, count = torch.ops.nbkit_counted.counted(torch.ones(3))
    finally:
        library._destroy()
    assert (out.tolist(), count, len(trace.replaced)) == ([2, 2, 2], 3, 1)


def test_memory_that_a_call_sees_in_two_dtypes_stays_where_it_is():
    x, bare = torch.ones(3), torch.ones(3)
    bare.add_(bare.view(torch.int32))
    seen_as_integers = x.view(torch.int32)
    with nbkit.opfallback(ops="add_") as trace:
        x.add_(seen_as_integers)
    assert x.tolist() == bare.tolist() and not len(trace.replaced)
    assert trace.meta["skipped"]["not replaced: views"] == 1
    assert not [reason for reason in trace.meta["skipped"] if "does not run there" in reason]


def test_an_empty_result_tensor_gets_its_size():
    out, halves = torch.empty(0), torch.empty(0, dtype=torch.float16)
    with nbkit.opfallback(ops="add") as trace:
        torch.add(torch.arange(3.0), 1, out=out)
    with nbkit.opcast("float32", ops="sum"):
        torch.sum(torch.ones(2, 3, dtype=torch.float16), 1, out=halves)
    assert (trace.replaced["op"].tolist(), out.tolist(), halves.tolist()) == (["aten.add.out"], [1, 2, 3], [3, 3])


def test_an_op_that_the_cpu_lacks_is_made_of_others():
    """Attention of a GPU, whose backward formula the CPU has by another name."""
    query, key, value, incoming = torch.randn(4, 1, 2, 5, 8)
    out, scale = aten._scaled_dot_product_flash_attention_for_cpu.default(query, key, value)
    given = incoming, query, key, value, out, scale
    seeds = torch.zeros(2), torch.zeros(2)
    with nbkit.opfallback() as trace:
        made = aten._scaled_dot_product_flash_attention_backward.default(*given, None, None, 5, 5, 0.0, False, *seeds)
    assert trace.replaced["op"].tolist() == ["aten._scaled_dot_product_flash_attention_backward.default"]
    expected = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(*given, 0.0, False)
    torch.testing.assert_close(list(made), list(expected), rtol=1e-4, atol=1e-5)
