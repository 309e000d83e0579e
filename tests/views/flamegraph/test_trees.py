"""Frames of two traces together; tests/browser/flamegraph/test_flame_trees.py holds them to the widget's."""

import pytest

from nbkit.views.flamegraph.data import flame_state
from nbkit.views.flamegraph.trees import FlameTree, flame_tree
from tests.support.fakes import make_ops, make_trace, timed_trace

NET = {"model": "Net", "module": "fc"}
NOW = make_trace(
    make_ops(
        {"op": "step", "level": "range", "phase": "other"},
        {"op": "Linear", "level": "module", "parent_id": 0, **NET},
        {"op": "aten.mm", "parent_id": 1, **NET},
        {"op": "aten.mm", "parent_id": 1, **NET},
    )
)
BASE = make_trace(
    make_ops(
        {"op": "step", "level": "range", "phase": "other"},
        {"op": "aten.old", "parent_id": 0},
        {"op": "Linear", "level": "module", "parent_id": 0, **NET},
        {"op": "aten.mm", "parent_id": 2, **NET, "phase": "backward"},
    )
)


def tree(group: str) -> FlameTree:
    return flame_tree(flame_state(NOW), flame_state(BASE), group)


def paths(found: FlameTree) -> list[str]:
    texts: list[str] = []
    for above, text in zip(found.parent.tolist(), found.texts, strict=True):
        texts.append(f"{texts[above]} > {text}" if above >= 0 else text)
    return texts


def test_merged_calls_are_those_of_both_a_module_going_by_its_path() -> None:
    found = tree("none")
    texts = paths(found)
    assert sorted(texts) == [
        "step",
        "step > Net.fc (Linear)",
        "step > Net.fc (Linear) > aten.mm",
        "step > aten.old",
    ]
    in_order = [[texts[frame] for frame in rows] for rows in found.frame_of]
    assert in_order[0] == ["step", "step > Net.fc (Linear)", *["step > Net.fc (Linear) > aten.mm"] * 2]
    assert in_order[1] == ["step", "step > aten.old", "step > Net.fc (Linear)", "step > Net.fc (Linear) > aten.mm"]


@pytest.mark.parametrize(
    ("group", "leaf"),
    [
        ("module", "Net > Net.fc > backward > aten.mm"),
        ("op", "aten.mm > backward > Net.fc"),
        ("phase", "backward > Net > Net.fc > aten.mm"),
    ],
)
def test_a_grouping_has_a_frame_for_each_step_of_a_path(group: str, leaf: str) -> None:
    found = tree(group)
    texts = paths(found)
    assert texts[found.frame_of[1][3]] == leaf
    assert len(set(texts)) == len(texts)
    assert (found.parent < range(len(texts))).all()


def test_a_frame_is_found_from_a_row_of_now_inside_it() -> None:
    found = tree("phase")
    row, up = found.rows_within()
    places = dict(zip(paths(found), zip(row.tolist(), up.tolist(), strict=True), strict=True))
    assert places["forward"] == (1, 3)
    assert places["forward > Net > Net.fc > aten.mm"] == (2, 0)
    assert places["backward"] == places["backward > Net > Net.fc > aten.mm"] == (-1, -1)


def test_work_on_a_device_has_no_frame() -> None:
    state = flame_state(timed_trace())
    assert flame_tree(state, state, "none").frame_of[0].tolist()[4] == -1
    assert len(flame_tree(state, state, "none").texts) == 7


def test_traces_without_ops_have_no_frames() -> None:
    empty = flame_state(make_trace(make_ops()))
    assert [len(flame_tree(empty, empty, group).texts) for group in ("none", "module")] == [0, 0]
