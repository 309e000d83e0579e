"""The tree of a step's cost, held against the frames that it is made of."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from nbkit.analysis.cost.op_totals import op_totals
from nbkit.errors import OptionError
from tests.support.costs import layers, with_times


def test_layers_that_are_alike_are_one_row_with_their_sums() -> None:
    tree = nbkit.cost_tree(layers())
    modules = tree[tree["kind"] == "module"].set_index("module")
    # 32 rows through four 16 -> 16 and one 16 -> 8; the first needs no gradient of its input.
    assert modules.loc["blocks.*", ["instances", "forward_flops", "backward_flops"]].tolist() == [4, 65_536, 114_688]
    assert modules.loc["head", ["instances", "forward_flops", "backward_flops"]].tolist() == [1, 8_192, 16_384]
    assert modules["params"].to_dict() == {"": 1_224, "blocks": 1_088, "blocks.*": 1_088, "head": 136}


def test_each_layer_has_its_own_row_where_they_are_not_folded() -> None:
    tree = nbkit.cost_tree(layers(), fold=False)
    modules = tree[tree["kind"] == "module"].set_index("module")
    assert {f"blocks.{number}" for number in range(4)} < set(modules.index)
    assert modules.loc["blocks.0", "backward_flops"] == modules.loc["blocks.1", "backward_flops"] / 2


@pytest.mark.parametrize("fold", [True, False])
def test_a_row_is_the_sum_of_what_it_holds_and_the_top_of_all(fold: bool) -> None:
    trace, tree = with_times(layers()), nbkit.cost_tree(with_times(layers()), fold=fold)
    names = ["calls", "flops", "forward_flops", "backward_flops", "moved_bytes", "saved_bytes", "time_us"]
    inside = tree.dropna(subset=["parent_id"]).groupby("parent_id")[names].sum()
    pd.testing.assert_frame_equal(
        inside, tree.loc[inside.index, names], check_names=False, check_index_type=False, check_dtype=False
    )
    top, costs = tree[tree["depth"] == 0][names].sum(), trace.costs
    assert top["flops"] == costs["flops"].sum()
    assert top["moved_bytes"] == (costs["read_bytes"] + costs["written_bytes"]).sum()
    assert top["saved_bytes"] == trace.saved["new_bytes"].sum()
    assert top["time_us"] == pytest.approx(costs["time_us"].sum())


def test_modules_have_what_module_costs_says() -> None:
    tree = nbkit.cost_tree(layers(), fold=False)
    mine = tree[tree["kind"] == "module"].set_index("module").sort_index()
    frame = layers().module_costs.set_index("module").sort_index()
    for name in ("forward_flops", "backward_flops", "moved_bytes", "saved_bytes", "params"):
        assert mine[name].tolist() == frame[name].tolist(), name


def test_parents_come_first_and_siblings_by_their_flops() -> None:
    tree = nbkit.cost_tree(layers())
    assert (tree["parent_id"].dropna() < tree.loc[tree["parent_id"].notna(), "node_id"]).all()
    assert tree["depth"].tolist() == [
        0 if pd.isna(parent) else tree["depth"][parent] + 1 for parent in tree["parent_id"]
    ]
    for _, siblings in tree.groupby("parent_id", dropna=False):
        assert siblings["flops"].is_monotonic_decreasing


def test_what_ran_in_no_module_is_outside_by_phase() -> None:
    tree = nbkit.cost_tree(layers())
    outside = tree[tree["kind"] == "outside"]
    assert "(optimizer)" in set(outside["name"]) and outside["params"].isna().all()
    assert tree["time_us"].isna().all()


def test_parameters_of_ops_add_up_to_those_of_the_model_and_shared_ones_count_once() -> None:
    assert op_totals(layers())["params"].sum() == 1_224
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    trace = nbkit.opcost().run(lambda: tied(torch.ones(1, 4)))
    tree = nbkit.cost_tree(trace)
    assert tree.loc[0, "params"] == trace.module_costs["params"][0] == 24


def test_flops_without_a_rule_are_unknown_per_op_and_nothing_in_sums() -> None:
    trace = nbkit.opcost().run(lambda: torch.ones(2, 2).neg())
    trace.frames["costs"] = trace.costs.assign(flops=pd.array([None] * len(trace.costs), dtype="Int64"))
    assert np.isnan(op_totals(trace)["flops"]).all() and nbkit.cost_tree(trace)["flops"].sum() == 0


def test_other_traces_and_odd_options_are_refused() -> None:
    with pytest.raises(OptionError, match=r"has no costs; give a trace of nbkit\.opcost\(\)"):
        nbkit.cost_tree(nbkit.Trace({}))
    with pytest.raises(OptionError, match="fold='yes' is neither True nor False"):
        nbkit.cost_tree(layers(), fold="yes")  # type: ignore[arg-type]
