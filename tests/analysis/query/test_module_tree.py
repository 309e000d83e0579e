"""The module tree with sums of what is below."""

from nbkit.analysis.query.module_tree import module_tree
from tests.support.fakes import make_modules, make_ops


def test_sums_include_what_is_below() -> None:
    rows = ({"model": "Net", "module": path, "self_time_us": 1.0} for path in ("", "a", "a.b", "a.b"))
    tree = module_tree(make_ops(*rows), make_modules("", "a", "a.b"))
    assert tree["module"].tolist() == ["", "a", "a.b"]
    assert tree["ops"].tolist() == [1, 1, 2]
    assert tree["ops_below"].tolist() == [4, 3, 2]
    assert tree["self_time_below_us"].tolist() == [4.0, 3.0, 2.0]


def test_containers_that_never_ran_are_added_between() -> None:
    tree = module_tree(make_ops({"model": "Net", "module": "blocks.0.att"}), make_modules(""))
    assert tree["module"].tolist() == ["", "blocks", "blocks.0", "blocks.0.att"]
    assert tree["type"].isna().tolist() == [False, True, True, True]
    assert tree["depth"].tolist() == [0, 1, 2, 3]
    assert tree["has_children"].tolist() == [True, True, True, False]


def test_siblings_keep_the_order_of_the_modules_frame() -> None:
    tree = module_tree(make_ops({"model": "Net", "module": "a"}), make_modules("", "b", "a", "b.x"))
    assert tree["module"].tolist() == ["", "b", "b.x", "a"]


def test_models_are_told_apart_and_ops_outside_are_left_out() -> None:
    ops = make_ops({"model": "A", "module": "x"}, {"model": "B", "module": "x"}, {})
    tree = module_tree(ops, make_modules())
    assert list(zip(tree["model"], tree["module"], strict=True)) == [("A", ""), ("A", "x"), ("B", ""), ("B", "x")]
    assert tree["ops_below"].tolist() == [1, 1, 1, 1]


def test_no_modules_give_no_rows() -> None:
    assert len(module_tree(make_ops({}), make_modules())) == 0
