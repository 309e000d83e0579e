"""Names of ops lose overload, namespace of aten and in-place mark, and nothing else."""

import pytest

from nbkit.ops.names import bare_name, base_of, packet_of

NAMES = {
    "aten.add_.Tensor": ("add_", "add"),
    "aten::add_.Tensor": ("add_", "add"),
    "aten.mm.default": ("mm", "mm"),
    "aten.mm": ("mm", "mm"),
    "_softmax": ("_softmax", "_softmax"),
    "aten.__and__.Tensor": ("__and__", "__and"),
    "mylib.add.default": ("mylib.add", "mylib.add"),
    "mylib::add": ("mylib.add", "mylib.add"),
    "c10d.allreduce_.default": ("c10d.allreduce_", "c10d.allreduce"),
    "torch.nn.functional.linear": ("torch.nn.functional.linear", "torch.nn.functional.linear"),
    None: ("", ""),
}


@pytest.mark.parametrize("op", NAMES, ids=str)
def test_a_name_without_overload_and_mark(op):
    assert (packet_of(op), base_of(op)) == NAMES[op]


def test_a_name_without_any_namespace():
    names = ("aten.addmm.default", "torch.addmm", "torch.nn.functional.linear", "mylib.mm", "MatMul", None)
    assert [bare_name(op) for op in names] == ["addmm", "addmm", "linear", "mm", "MatMul", ""]
