"""The modules frame of a graph that only names its modules."""

from nbkit.graphs.module_paths import Held, ModulePaths, holders


def test_modules_are_counted_with_all_that_they_hold() -> None:
    paths = ModulePaths()
    paths.called("", "Net", "0")
    paths.called("blocks.0", "Block", "0")
    paths.called("blocks.0", "Other", "1")
    paths.called("blocks.0", None, "1")
    paths.holds(Held("blocks.0.weight", 1, 6, 24))
    paths.holds(Held("head.weight", 1, 6, 24))  # the same tensor
    paths.holds(Held("head.bias", 2, 3, 6, is_trainable=False))
    paths.holds(Held("head.mean", 3, 4, 16, is_buffer=True))
    columns = [
        "module",
        "type",
        "parent",
        "depth",
        "calls",
        "params",
        "trainable_params",
        "param_bytes",
        "buffer_bytes",
    ]
    frame = paths.frame("unknown")
    assert frame["model"].unique().tolist() == ["Net"]
    assert frame[columns].astype(object).where(frame[columns].notna(), None).to_numpy().tolist() == [
        ["", "Net", None, 0, 1, 9, 6, 30, 16],
        ["blocks", None, "", 1, 0, 6, 6, 24, 0],
        ["blocks.0", "Block", "blocks", 2, 2, 6, 6, 24, 0],
        ["head", None, "", 1, 0, 9, 6, 30, 16],
    ]


def test_a_root_without_a_class_has_the_label() -> None:
    paths = ModulePaths()
    assert len(paths.frame("m")) == 0
    paths.holds(Held("weight", 0, 1, 4))
    assert paths.frame("m")[["model", "module", "params"]].to_numpy().tolist() == [["m", "", 1]]


def test_holders_are_the_modules_around_a_path() -> None:
    assert list(holders("a.b.c")) == ["", "a", "a.b"]
    assert list(holders("a")) == [""]
    assert list(holders("")) == []
