"""Calls that are alike have one key; what torch tells apart has different ones, and gives what torch gives."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from nbkit.capture.cost.fake import fake_mode
from nbkit.capture.cost.fake.fake_mode import FakeMode

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    monkeypatch.setattr(fake_mode, "KEYS", {})


def made(mode, *shape, **options):
    with mode:
        return torch.empty(*shape, **options)


def form(out):
    return (
        type(out), out.shape, out.stride(), out.dtype, out.device, out.storage_offset(), out.requires_grad,
        out.is_conj(), out.untyped_storage().nbytes(),
    )  # fmt: skip


# Two calls of one op that give different results, or that differ in what torch's own key tells apart.
PAIRS = {
    "shape": lambda x: (x(2, 3), x(3, 2)),
    "stride": lambda x: (x(2, 3), x(3, 2).t()),
    "dtype": lambda x: (x(2, 3), x(2, 3, dtype=torch.float64)),
    "offset": lambda x: (x(2, 3), x(3, 3)[1:]),
    "conjugate": lambda x: (x(2, 3, dtype=torch.complex64), x(2, 3, dtype=torch.complex64).conj()),
    "gradient": lambda x: (x(2, 3), x(2, 3, requires_grad=True)),
    "memory": lambda x: (x(2, 3), x(4, 3)[:2]),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_tensors_that_differ_are_told_apart(pair):
    found = []
    for mode in (FakeMode(), FakeTensorMode()):
        first, second = PAIRS[pair](lambda *shape, mode=mode, **options: made(mode, *shape, **options))
        with mode, torch.no_grad():
            found.append([form(aten.view.default(tensor, tensor.shape)) for tensor in (first, second, first)])
            found[-1] += [form(aten.neg.default(tensor)) for tensor in (first, second, first)]
        if isinstance(mode, FakeMode):
            assert len([key for key in mode.keys if key[0] is aten.view.default]) == 2
    assert found[0] == found[1]


@pytest.mark.parametrize("scalars", [(1, 1.0), (True, 1), (2.0, 2 + 0j)])
def test_numbers_that_are_equal_have_types(scalars):
    mode = FakeMode()
    integers = made(mode, 3, dtype=torch.int8)
    with mode:
        dtypes = [aten.add.Tensor(integers, scalar).dtype for scalar in (*scalars, *scalars)]
    with FakeTensorMode() as torchs:
        whole = made(torchs, 3, dtype=torch.int8)
        assert dtypes == [aten.add.Tensor(whole, scalar).dtype for scalar in (*scalars, *scalars)]


def test_a_call_that_is_alike_has_one_key_and_a_result_of_its_own():
    mode = FakeMode()
    x = made(mode, 2, 3)
    with mode:
        first, second = (aten.cat.default([x, x], 1) for _ in "12")
        view = aten.t.default(x)
    assert len({id(torchs) for key, torchs in mode.keys.items() if key[0] is aten.cat.default}) == 1
    assert first is not second and first.untyped_storage() is not second.untyped_storage()
    assert view.untyped_storage() is x.untyped_storage()


def test_what_is_set_around_a_call_is_told_apart():
    mode = FakeMode()
    with mode:
        before = aten.full.default([2], 1.0).dtype
        torch.set_default_dtype(torch.float64)
        try:
            after = aten.full.default([2], 1.0).dtype
        finally:
            torch.set_default_dtype(torch.float32)
    assert (before, after) == (torch.float32, torch.float64)


def test_what_is_unusual_is_left_to_torch():
    """Sparse tensors, those of another mode, and constants, which torch.tensor() makes."""
    mode = FakeMode()
    with mode:
        places = torch.zeros(1, 1, dtype=torch.long)
        sparse = torch.sparse_coo_tensor(places, torch.ones(1), (2,), check_invariants=False)
        constant = torch.tensor(3.0)
        known = len(mode.keys)
        assert constant.constant is not None
        assert isinstance(aten.neg.default(sparse), FakeTensor) and (constant + 1).shape == ()
        assert not [key for key in [*mode.keys][known:] if key[0] is aten.neg.default]
    other = made(FakeMode(), 2)
    with pytest.raises(AssertionError, match="Mixing fake modes"), mode:
        aten.neg.default(other)


# Calls whose results torch keeps in each of its ways: new memory, a view, an argument, several results, no tensor.
CALLS = {
    "new": lambda x: aten.mm.default(x, x),
    "strided": lambda x: aten.clone.default(x.t()),
    "view": lambda x: aten.slice.Tensor(x, 0, 1, 3),
    "in place": lambda x: aten.add_.Tensor(x, 1.0),
    "several": lambda x: aten.native_layer_norm.default(x, [4], None, None, 1e-5),
    "several views": lambda x: aten.unbind.int(x),
    "conjugate": lambda x: aten._conj.default(aten._to_copy.default(x, dtype=torch.complex64)),
    "written": lambda x: aten.mm.out(x, x, out=x),
    "number": lambda x: aten.sym_numel.default(x),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_kept_result_is_that_of_torch(call):
    """The second time it comes from what was kept."""
    found = []
    for mode in (FakeMode(), FakeTensorMode()):
        x = made(mode, 4, 4)
        with mode, torch.no_grad():
            outs = [CALLS[call](x) for _ in "12"]
        parts = [out if isinstance(out, list | tuple) else [out] for out in outs]
        found.append([[form(one) if isinstance(one, FakeTensor) else one for one in part] for part in parts])
        found[-1] += [[one is x or (isinstance(one, FakeTensor) and one.untyped_storage() is x.untyped_storage())
                       for one in part] for part in parts]  # fmt: skip
    assert found[0] == found[1] and found[0][0] == found[0][1]


def test_a_later_step_asks_for_no_key_again(monkeypatch):
    def neg():
        mode = FakeMode()
        x = made(mode, 2, 3)
        with mode:
            return form(aten.neg.default(x))

    first = neg()
    monkeypatch.setattr(FakeTensorMode, "_cache_key", None)  # who asks for one, calls it
    assert neg() == first
    fake_mode.KEYS.clear()
    with pytest.raises(TypeError):
        neg()


# Calls on a part of a memory, at its beginning and further on: what is new is the same, and a view is where it is.
PLACED = {
    "new": lambda x: aten.neg.default(x),
    "two": lambda x: aten.mul.Tensor(x, x[:1]),
    "strided": lambda x: aten.neg.default(x.t()),
    "view": lambda x: aten.slice.Tensor(x, 0, 1),
    "in place": lambda x: aten.add_.Tensor(x, 1.0),
    "at a place": lambda x: aten.as_strided_copy.default(x, [2], [1]),
    "quiet view": lambda x: aten._unsafe_view.default(x, [12]),
}


@pytest.mark.parametrize("call", PLACED)
def test_a_result_does_not_depend_on_where_the_input_is_unless_it_is_there_too(call):
    found = []
    for mode in (FakeMode(), FakeTensorMode()):
        whole = made(mode, 8, 4)
        with mode, torch.no_grad():
            parts = [PLACED[call](whole[start : start + 3]) for start in (0, 2, 4, 4, 0)]
        found.append([(form(part), part.storage_offset(), part.untyped_storage().nbytes()) for part in parts])
    assert found[0] == found[1]


def test_torch_is_not_asked_again_where_the_input_is_further_on(monkeypatch):
    fake_mode.KEYS.clear()
    mode = FakeMode()
    with mode:
        rows = [made(mode, 8, 4)[place] for place in range(4)]
        form_of_first = form(aten.neg.default(rows[0]))
        monkeypatch.setattr(FakeTensorMode, "_cache_key", None)  # who asks for one, calls it
        assert [form(aten.neg.default(row)) for row in rows[1:]] == [form_of_first] * 3
        for is_placed in (aten.alias.default, lambda row: aten.select_scatter.default(row, row[0], 0, 1)):
            with pytest.raises(TypeError):
                is_placed(rows[3])


def test_what_torch_forgets_is_not_known_to_a_later_step(monkeypatch):
    for _ in "12":
        monkeypatch.setattr(FakeTensorMode, "cache", {})
        mode = FakeMode()
        x = made(mode, 2, 3)
        with mode:
            aten.neg.default(x)
        assert [entry for key, entry in FakeTensorMode.cache.items()]


def test_a_conjugated_tensor_is_told_apart_from_others_of_a_step_before():
    real = torch.tensor([1 + 2j])
    conjugates = []
    for taken in (real.conj(), real):
        mode = FakeMode()
        fake = mode.from_real(taken)
        with mode:
            conjugates.append(aten._conj.default(fake).is_conj())
    assert conjugates == [False, True]


def whole():
    return torch.arange(24.0).view(4, 6).clone()


# Real tensors that are plain, and others that are not: a view, one that lies in the memory of another, a history.
REAL = {
    "plain": lambda: [whole()],
    "integers": lambda: [torch.arange(6)],
    "number": lambda: [torch.tensor(2.0)],
    "empty": lambda: [torch.empty(0, 3)],
    "strided": lambda: [torch.empty_strided((3, 2), (1, 3))],
    "parameter": lambda: [torch.nn.Parameter(whole())],
    "buffer": lambda: [torch.nn.Buffer(whole())],
    "view": lambda: (lambda x: [x, x[1:], x.t()])(whole()),
    "view first": lambda: (lambda x: [x[1:], x])(whole()),
    "data": lambda: (lambda x: [x, x.data[2:], x.data])(torch.nn.Parameter(whole())),
    "history": lambda: [whole().requires_grad_() * 2],
    "conjugate": lambda: [torch.ones(3, dtype=torch.complex64).conj()],
    "no memory": lambda: (lambda x: [x.untyped_storage().resize_(0) and None, x][1:])(whole()),
}


@pytest.mark.parametrize("real", REAL)
def test_a_fake_tensor_for_a_real_one_is_that_of_torch(real):
    tensors = REAL[real]()
    found = []
    for taken in (FakeMode().from_real, FakeTensorMode().from_tensor):
        fakes = [taken(tensor) for tensor in tensors]
        memories = [fake.untyped_storage() for fake in fakes]
        found.append([(form(fake), fake.is_leaf, fake._is_view(), isinstance(fake, torch.nn.Parameter),
                       isinstance(fake, torch.nn.Buffer), memories.index(fake.untyped_storage()),
                       torch._C._dispatch_keys(fake).raw_repr()) for fake in fakes])  # fmt: skip
        assert all(taken(tensor) is fake for tensor, fake in zip(tensors, fakes, strict=True))
    assert found[0] == found[1]
