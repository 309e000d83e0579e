"""What a reference does where it has no kernel for the precise dtype: a trial decides, not the text of an error."""

import re

import pytest
import torch

from nbkit import OptionError
from nbkit.capture.replay.op_traits import traits_of
from nbkit.capture.replay.reference import NoKernelError, Reference, Results
from tests.capture.diff.planted import compared

aten = torch.ops.aten
FLOAT8 = torch.float8_e4m3fn
X = torch.linspace(-1, 1, 64).reshape(8, 8)
ONE = torch.ones(1)
# Calls that run as they are and raise in float64, each in words of its own: op, arguments, type of the error.
NARROW = {
    "Quantize only works on Float": (aten.quantize_per_tensor.default, (X, 0.1, 0, torch.qint8), RuntimeError),
    "itensor_view_from_dense expects": (
        torch.ops.mkldnn._linear_pointwise.default,
        (X, X, None, "none", [], ""),
        RuntimeError,
    ),
    "to be either 32-bit or 16-bit": (aten._weight_int8pack_mm.default, (X, X.to(torch.int8), X[0]), RuntimeError),
    "expected scalar type Float": (aten.choose_qparams_optimized.default, (X, 64, 10, 0.1, 8), RuntimeError),
}
# The same, which run in no wider dtype: in their own alone.
SMALL = X.repeat(2, 2).to(FLOAT8)
OWN = {
    "float8": (aten._scaled_mm.default, (SMALL, SMALL.t(), ONE, ONE), ValueError),
    "a dtype and a flag": (
        aten._scaled_mm.default,
        (SMALL, SMALL.t(), ONE, ONE, None, None, torch.bfloat16, False),
        ValueError,
    ),
}


# An op of the user's own that knows float32 alone, and says so by the error in its name.
LIBRARY = torch.library.Library("nbkit_reference", "DEF")
SAYS = {kind.__name__: kind for kind in (NotImplementedError, RuntimeError, AssertionError, TypeError)}
for name, kind in SAYS.items():

    def only_float32(x, kind=kind):
        if x.dtype is not torch.float32:
            raise kind("float32 or nothing")
        return x.exp()

    LIBRARY.define(f"{name}(Tensor x) -> Tensor")
    LIBRARY.impl(name, only_float32, "CPU")


def call_of(op, args, reference="cpu"):
    return Reference(reference).copy(traits_of(op), args, {}), (args, {})


def wide(value):
    return value.double() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


@pytest.mark.parametrize("text", NARROW)
def test_an_op_without_a_float64_kernel_falls_to_float32_whatever_torch_says(text):
    op, args, kind = NARROW[text]
    with pytest.raises(kind, match=text):
        op(*map(wide, args))
    call, given = call_of(op, args)
    found = call.results(given).all
    for expected, actual in zip(found, Results(op(*args), [], call.traits.values).all, strict=True):
        assert torch.equal(expected.dequantize(), actual.dequantize())
    assert call.note.startswith("compared in float32: the reference has no float64 kernel (")
    assert text in call.note


@pytest.mark.parametrize("kind", OWN)
def test_an_op_of_narrow_dtypes_alone_runs_in_its_own(kind):
    """Why there is no wider kernel, torch says in other words on other processors."""
    op, args, _ = OWN[kind]
    call, given = call_of(op, args)
    [found] = call.results(given).all
    assert torch.equal(found.float(), op(*args).float())
    assert re.fullmatch(r"compared in its own dtypes: the reference has no wider kernel \(.+\)", call.note)


@pytest.mark.parametrize("kind", SAYS)
def test_an_op_of_the_users_own_falls_to_float32(kind):
    trace = compared(lambda: getattr(torch.ops.nbkit_reference, kind)(X))
    row = trace.diffs[trace.diffs["op"] == f"nbkit_reference.{kind}.default"].iloc[0]
    text = "compared in float32: the reference has no float64 kernel (float32 or nothing)"
    assert (row["status"], row["message"]) == ("ok", text)


def test_a_float64_input_is_not_compared_in_float32():
    """Its reference would be the less precise of the two."""
    call, given = call_of(torch.ops.nbkit_reference.NotImplementedError.default, (X.double(),))
    with pytest.raises(NoKernelError, match="float32 or nothing"):
        call.results(given)


def test_what_raises_in_every_dtype_is_no_missing_kernel():
    call, given = call_of(aten.gather.default, (X, 0, torch.full((1, 1), 99)))
    with pytest.raises(RuntimeError, match="index 99 is out of bounds"):
        call.results(given)
    assert not call.reference.narrow


def test_an_error_of_values_is_not_tried_in_other_dtypes():
    call, given = call_of(aten.embedding.default, (X, torch.tensor([99])))
    with pytest.raises(IndexError, match="out of range"):
        call.results(given)


def test_without_any_kernel_the_row_says_so():
    LIBRARY.define("elsewhere(Tensor x) -> Tensor")
    call, given = call_of(torch.ops.nbkit_reference.elsewhere.default, (X,))
    with pytest.raises(NoKernelError, match="Could not run 'nbkit_reference::elsewhere'"):
        call.results(given)


def test_other_precisions_are_tried_once_per_op():
    reference, traits = Reference("cpu"), traits_of(aten.quantize_per_tensor.default)
    for _ in range(2):
        call = reference.copy(traits, (X, 0.1, 0, torch.qint8), {})
        assert call.results().all[0].dtype is torch.qint8
    assert call.args[0].dtype is torch.float32
    assert list(reference.narrow) == [traits.func]


@pytest.mark.parametrize("name", ["meta", "meta:float32", "cuda:77", "xyz", "cpu:float16"])
def test_a_device_that_is_missing_or_holds_no_values_is_refused(name):
    with pytest.raises(OptionError, match=f"^reference='{name}' cannot be used .*give a device that is here"):
        Reference(name)
