"""The op table of an opcost trace is one of costs."""

import pandas as pd
import pytest

from nbkit.views.op_table.source import OpSource
from nbkit.views.op_table.widget import OpTableModel
from tests.support.costs import layers, with_times

COSTS = ["total_flops", "forward_flops", "backward_flops", "size_bytes", "saved_bytes", "params"]


def timed() -> OpSource:
    source = OpSource(layers())
    source.trace.frames["costs"] = with_times(layers()).costs
    return source


def groups(source: OpSource) -> pd.DataFrame:
    way = source.overview()["cost"]["ways"]["layer"]
    source.answer({"kind": "rows", "query": {"group": way["group"], "sort": way["sort"]}})
    found = source.groups()
    assert found is not None
    return found.set_index("layer")


def test_it_opens_with_modules_and_costs_instead_of_times() -> None:
    source = OpSource(layers())
    assert source.overview()["group"] == "layer" and source.overview()["cost"]["bar"] == "total_flops"
    assert [name for name in source.shown_columns if name.endswith(("_us", "flops", "bytes", "params"))] == COSTS
    assert timed().shown_columns.count("predicted_us") == 1


def test_groups_by_layer_have_the_sums_of_the_frames() -> None:
    trace = layers()
    table = groups(OpSource(trace))
    assert table.index[:2].tolist() == ["blocks.*", "head"]
    assert table.loc["blocks.*", COSTS].tolist() == [
        180_224,
        65_536,
        114_688,
        trace.module_costs.query("module.str.startswith('blocks.')")["moved_bytes"].sum(),
        trace.module_costs.query("module.str.startswith('blocks.')")["saved_bytes"].sum(),
        1_088,
    ]
    assert table["total_flops"].sum() == trace.costs["flops"].sum()
    assert table["saved_bytes"].sum() == trace.saved["new_bytes"].sum()


def test_predicted_times_add_up() -> None:
    whole = with_times(layers()).costs["time_us"].sum()
    assert groups(timed())["predicted_us"].sum() == pytest.approx(whole)


def test_the_module_tree_and_the_phases_count_flops() -> None:
    source = OpSource(layers())
    modules = source.answer({"kind": "modules"})
    assert modules["amount"] == modules["rows"][0][-1] == layers().costs["flops"].sum()
    phases = {phase["phase"]: phase["time"] for phase in source.overview()["phases"]}
    assert phases["forward"] == "73.7 kFLOP" and phases["optimizer"] == "0 FLOP"


def test_the_detail_of_an_op_has_its_costs_and_no_times() -> None:
    costs = layers().costs
    op_id = int(costs["op_id"][costs["op"] == "aten.addmm.default"].iloc[0])
    fields = OpSource(layers()).answer({"kind": "detail", "op_id": op_id})["fields"]
    row = costs[costs["op_id"] == op_id].iloc[0]
    assert (fields["flops"], fields["size_bytes"]) == (row["flops"], row["read_bytes"] + row["written_bytes"])
    assert fields["self_time_us"] is None and fields["start_us"] is None


def test_rows_that_are_shown_are_still_those_of_the_trace() -> None:
    pd.testing.assert_frame_equal(OpTableModel(layers()).filtered, layers().ops)
