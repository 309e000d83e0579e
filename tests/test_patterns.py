"""Tests patterns: plain names literal, globs, re: for regular expressions; bad ones refused in one sentence."""

import pytest

from nbkit import PatternError
from nbkit.patterns import module_matcher, op_matcher, path_matcher, selects, split_patterns

NAMES = """add add_ sub mul div matmul mm bmm addmm linear relu relu_ gelu silu softmax log_softmax layer_norm
embedding cross_entropy dropout conv1d conv3d""".split()


@pytest.mark.parametrize(
    ("patterns", "name", "fits"),
    [
        ("torch.addc", "torch.addc", True),
        ("torch.addc,torch.sub", "torch.addc", True),
        ("torch.add,torch.sub", "torch.addc", False),
        ("*", "torch.addc", True),
        ("re:.*", "torch.addc", True),
        ("", "torch.add", False),
        ("torch_mlu.*", "torch_mlu.fused_l2_norm", True),
        ("re:torch.(add|sub)", "torch.add", True),
        ("re:torch.(add|sub)", "torch.adds", False),
        (" torch.add , torch.sub ", "torch.sub", True),
        ("torch.add", "torchXadd", False),
        ("aten.add", "aten.add.Tensor", True),
        ("aten.add.Tensor", "aten.add.Tensor", True),
        ("add", "aten.add.Tensor", True),
        ("add", "aten.add_.Tensor", False),
        ("Tensor", "aten.add.Tensor", False),
        ("add", "aten.addmm.default", False),
        ("linear", "torch.nn.functional.linear", True),
        ("functional.linear", "torch.nn.functional.linear", True),
        ("aten", "aten.add.Tensor", False),
        ("*norm*", "aten.native_layer_norm.default", True),
        ("add?", "aten.add_.Tensor", True),
        ("[as]*b", "aten.sub.Tensor", True),
        ("torch.Tensor.add_", "torch.Tensor.add_", True),
        ("ADD", "aten.add.Tensor", False),
        ("re:add,mul", "add,mul", True),
        (["add", "re:m(u|i)l"], "aten.mul.Tensor", True),
    ],
)
def test_op_names(patterns, name, fits):
    """Defects B44-B46."""
    assert op_matcher(patterns)(name) is fits


def test_a_list_of_22_names_fits_its_members_only():
    matches = op_matcher(",".join(NAMES))
    assert len(NAMES) == 22
    assert all(matches(f"aten.{name}.default") and matches(f"torch.nn.functional.{name}") for name in NAMES)
    assert not matches("torch.nn.functional.conv2d")
    assert not matches("aten.conv2d.default")


@pytest.mark.parametrize(
    ("patterns", "path", "fits"),
    [
        ("blocks.0", "blocks.0", True),
        ("blocks.0", "blocks.0.att.key", True),
        ("blocks.0", "blocks.01", False),
        ("blocks.*.att", "blocks.3.att.key", True),
        ("att", "blocks.0.att", False),
        ("re:blocks\\.[02]", "blocks.2.ffn", True),
        ("re:blocks\\.[02]", "blocks.1.ffn", False),
        ("*", "", True),
        ("head", "", False),
    ],
)
def test_module_paths(patterns, path, fits):
    assert module_matcher(patterns)(path) is fits


@pytest.mark.parametrize(
    ("patterns", "path", "fits"),
    [
        ("layers.0", "layers.0", True),
        ("layers.0", "layers.0.attention", False),
        ("layers.*", "layers.0.attention", True),
        ("*", "", True),
        ("", "", False),
        ("re:layers\\.[01]", "layers.1", True),
        (["head", "norm"], "norm", True),
    ],
)
def test_a_path_itself_fits(patterns, path, fits):
    assert path_matcher(patterns)(path) is fits


def test_exclusion_wins():
    matches = selects(op_matcher("sort,add"), op_matcher("sort"))
    assert [matches(name) for name in ("aten.add.Tensor", "aten.sort.default", "aten.mul.Tensor")] == [
        True,
        False,
        False,
    ]
    assert selects(None, None)("anything")


def test_splitting():
    assert split_patterns(None) == []
    assert split_patterns(" a , ,b,") == ["a", "b"]
    assert split_patterns("re:a,b") == ["re:a,b"]
    assert split_patterns(["a,b", " c "]) == ["a,b", "c"]


@pytest.mark.parametrize("bad", ["re:(", "re:*", "re:[", "add,re:("])
def test_a_bad_regular_expression_is_refused_with_its_fault(bad):
    """Defect B47: at configuration, not inside an op."""
    with pytest.raises(PatternError, match=r"^'re:.+' is not a regular expression: .+; mend it, or leave 're:' out"):
        op_matcher(bad)
    with pytest.raises(PatternError):
        module_matcher(bad)


@pytest.mark.parametrize("bad", [3, [3], [None], ["add", b"sub"]])
def test_a_pattern_is_text(bad):
    with pytest.raises(PatternError, match="A pattern is text, not "):
        op_matcher(bad)


@pytest.mark.parametrize("pattern", ["[", "a[b", "[!", "{a}", "a+b", "a|b", "^a$"])
def test_what_is_no_glob_is_literal(pattern):
    assert op_matcher(pattern)(pattern)
    assert not op_matcher(pattern)("other")
