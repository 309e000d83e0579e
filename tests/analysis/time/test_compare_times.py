"""The difference of two timings: matching, drift, noise and order."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbkit.analysis.time.compare_times import TIME_DIFFS, compare_times
from nbkit.errors import OptionError
from nbkit.schema import SAMPLES
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops

MODULES = [f"blocks.{number}" for number in range(12)]


def timed(*rows: dict[str, Any], samples: pd.DataFrame | None = None) -> Trace:
    return Trace({"ops": make_ops(*rows)} | ({} if samples is None else {"samples": samples}), {"complete": True})


def repeated(seed: int, factor: float = 1.0, slow: str | None = None, by: float = 1.2, repeats: int = 10) -> Trace:
    """Ten repeats of a step of 12 modules with a module row of 10 us and two ops of 100 and 200 us each."""
    draw = np.random.default_rng(seed)
    names = [("module", "Block", 10.0), ("aten", "aten.mm.default", 100.0), ("aten", "aten.add.Tensor", 200.0)]
    ops = make_ops(
        *(
            {"level": level, "op": op, "model": "Net", "module": module, "self_time_us": time * factor}
            for module in MODULES
            for level, op, time in names
        )
    )
    ops["self_time_us"] *= np.where(ops["module"] == slow, by, 1.0)
    times = np.outer(ops["self_time_us"], np.ones(repeats)) * draw.normal(1.0, 0.03, (len(ops), repeats))
    times[:, 2::5] *= 1.4
    row, repeat = np.indices(times.shape).reshape(2, -1)
    columns = {"op_id": row, "repeat": repeat, "total_time_us": times.ravel(), "self_time_us": times.ravel()}
    return Trace({"ops": ops, "samples": SAMPLES.frame(columns)}, {"complete": True})


def test_groups_are_matched_by_module_op_and_phase() -> None:
    fc = {"model": "Net", "module": "fc"}
    left = timed({"op": "a", **fc, "self_time_us": 4.0}, {"op": "a", **fc, "self_time_us": 2.0}, {"op": "b"})
    right = timed({"op": "a", **fc, "self_time_us": 9.0}, {"op": "a", **fc, "phase": "backward", "self_time_us": 2.0})
    table = TIME_DIFFS.check(compare_times(left, right, by="op"))
    shown = table[
        ["module", "phase", "op", "action", "left_calls", "right_calls", "left_us", "right_us", "difference_us"]
    ]
    assert shown.astype({"module": object}).fillna("-").to_numpy().tolist() == [
        ["fc", "forward", "a", "match", 2, 1, 6.0, 9.0, 3.0],
        ["fc", "backward", "a", "right_only", 0, 1, 0.0, 2.0, 2.0],
        ["-", "forward", "b", "left_only", 1, 0, 1.0, 0.0, -1.0],
    ]
    assert table["ratio"].fillna(-1).tolist() == [1.5, -1.0, 0.0]


def test_a_module_is_all_that_runs_in_it() -> None:
    fc = {"model": "Net", "module": "fc"}
    left = timed({"level": "module", "op": "Linear", **fc, "self_time_us": 4.0}, {"op": "a", **fc, "self_time_us": 2.0})
    table = compare_times(left, timed({"op": "b", **fc, "self_time_us": 7.0}))
    assert table[["action", "left_calls", "right_calls", "left_us", "right_us"]].to_numpy().tolist() == [
        ["match", 2, 1, 6.0, 7.0]
    ]
    assert table["op"].isna().all()


def test_without_repeats_the_noise_is_unknown_and_that_is_said() -> None:
    table = compare_times(timed({}), timed({"self_time_us": 9.0}))
    assert table[["noise_us", "verdict"]].isna().all(axis=None)
    assert table.attrs["notes"][0].startswith("The noise is unknown")
    assert table.attrs["left_repeats"] == table.attrs["right_repeats"] == 1
    assert compare_times(repeated(0), repeated(1, repeats=1))["verdict"].isna().all()


def test_few_repeats_are_noted() -> None:
    note = "Only large changes are reliable with 5 repeats; use -r 10 (repeats=10)."
    assert compare_times(repeated(0, repeats=5), repeated(1))["verdict"].notna().all()
    assert compare_times(repeated(0, repeats=5), repeated(1)).attrs["notes"] == [note]
    assert compare_times(repeated(0), repeated(1)).attrs["notes"] == []


@pytest.mark.parametrize("by", ["module", "op"])
def test_equal_runs_have_no_row_beyond_noise(by: Any) -> None:
    tables = [compare_times(repeated(seed), repeated(seed + 100), by=by) for seed in range(20)]
    assert {verdict for table in tables for verdict in table["verdict"]} == {"within_noise"}


def test_a_slower_module_is_the_top_row_and_the_only_one_beyond_noise() -> None:
    for seed in range(20):
        table = compare_times(repeated(seed), repeated(seed + 100, slow="blocks.3"))
        assert table["module"].iloc[0] == "blocks.3"
        assert table["verdict"].tolist() == ["slower"] + ["within_noise"] * 11
        assert abs(table["change_us"].iloc[0] - 62.0) < 25.0


def test_a_faster_op_is_found_by_op() -> None:
    table = compare_times(repeated(1, slow="blocks.3", by=1.5), repeated(2), by="op")
    assert table.loc[table["verdict"] == "faster", ["module", "op"]].to_numpy().tolist() == [
        ["blocks.3", "aten.add.Tensor"], ["blocks.3", "aten.mm.default"], ["blocks.3", "Block"]]  # fmt: skip


def test_a_slower_machine_is_one_sentence_not_many_rows() -> None:
    table = compare_times(repeated(1), repeated(2, factor=1.25))
    assert set(table["verdict"]) == {"within_noise"}
    assert table.attrs["common_factor"] == pytest.approx(1.25, abs=0.02)
    assert table.attrs["notes"][0].startswith("Overall speed differs by 1.2")
    assert (table["drift_us"] + table["change_us"] - table["difference_us"]).abs().max() < 1e-9
    assert table["drift_us"].mean() == pytest.approx(77.5, abs=25.0)
    assert "machine load, or a change of them all" in table.attrs["notes"][0]
    faster = compare_times(repeated(1), repeated(2, factor=0.8)).attrs["notes"][0]
    assert faster.startswith("Overall speed differs by 0.8") and "verdicts are corrected for it" in faster


def test_changed_ops_do_not_tell_the_speed_of_the_machine() -> None:
    left, right = repeated(1), repeated(2)
    ops, samples = left.frames["ops"], right.frames["samples"]
    is_changed = ops["module"].isin(MODULES[:8]).to_numpy()
    ops.loc[is_changed & (ops["op"] == "aten.mm.default"), "op"] = "aten.add.Tensor"
    samples.loc[is_changed[samples["op_id"]], "self_time_us"] *= 0.1
    table = compare_times(left, right)
    assert table.attrs["common_factor"] == pytest.approx(1.0, abs=0.02)
    assert table.attrs["notes"][0].startswith(
        "65% of a run is in ops that the other run calls a different number of times"
    )
    assert table["verdict"].tolist() == ["faster"] * 8 + ["within_noise"] * 4


def test_an_interruption_is_no_time_of_a_call() -> None:
    right = repeated(2)
    samples = right.frames["samples"]
    for op_id, repeats in ((4, range(4)), (5, range(4, 8))):
        samples.loc[(samples["op_id"] == op_id) & samples["repeat"].isin(repeats), "self_time_us"] += 4000.0
    table = compare_times(repeated(1), right).set_index("module")
    assert table.loc["blocks.1", "right_us"] < 800.0
    assert set(table["verdict"]) == {"within_noise"}


def test_rows_beyond_noise_are_in_order_of_their_change_the_others_of_how_near_they_come_to_it() -> None:
    table = compare_times(repeated(1, slow="blocks.3", by=1.5), repeated(2), by="op")
    is_within = table["verdict"] == "within_noise"
    assert is_within.is_monotonic_increasing
    assert table.loc[~is_within, "change_us"].abs().is_monotonic_decreasing
    nearness = (table["change_us"].abs() / table["noise_us"])[is_within]
    assert len(nearness) > 20 and nearness.is_monotonic_decreasing
    assert not table.loc[is_within, "change_us"].abs().is_monotonic_decreasing


def test_a_new_and_a_gone_group_are_beyond_noise() -> None:
    table = compare_times(repeated(1), repeated(2), by="op")
    assert len(table) == 36
    other = repeated(2)
    other.frames["ops"].loc[4, "op"] = "aten.bmm.default"
    changed = compare_times(repeated(1), other, by="op").head(2)
    assert sorted(changed[["op", "action", "verdict"]].to_numpy().tolist()) == [
        ["aten.bmm.default", "right_only", "slower"], ["aten.mm.default", "left_only", "faster"]]  # fmt: skip
    assert changed["change_us"].abs().tolist() == pytest.approx([100.0, 100.0], rel=0.1)
    assert changed["noise_us"].tolist() == [0.0, 0.0]


def test_a_group_without_any_time_on_one_side_is_judged() -> None:
    left, right = repeated(1), repeated(2)
    left.frames["samples"].loc[left.frames["samples"]["op_id"] == 4, "self_time_us"] = 0.0
    left.frames["ops"].loc[4, "self_time_us"] = 0.0
    table = compare_times(left, right, by="op")
    assert table.loc[0, ["op", "action", "left_us", "verdict"]].tolist() == ["aten.mm.default", "match", 0.0, "slower"]
    assert (table["verdict"] == "within_noise").sum() == 35


def test_kernels_are_compared_on_the_clock_of_the_device() -> None:
    def run(time: float) -> Trace:
        return timed({"self_device_time_us": time}, {"parent_id": 0, "level": "kernel", "total_device_time_us": time})

    table = compare_times(run(3.0), run(5.0), clock="device")
    assert table[["left_calls", "left_us", "right_us"]].to_numpy().tolist() == [[1, 3.0, 5.0]]


def test_repeats_of_kernels_are_in_no_group_of_the_host() -> None:
    def with_kernel(trace: Trace, time: float) -> Trace:
        kernel = trace.ops.tail(1).assign(op_id=len(trace.ops), level="kernel", op="gemm", self_time_us=time)
        rows = trace.samples[trace.samples["op_id"] == 0].assign(op_id=len(trace.ops), self_time_us=time)
        frames = {"ops": pd.concat([trace.ops, kernel]), "samples": pd.concat([trace.samples, rows])}
        return Trace({name: frame.reset_index(drop=True) for name, frame in frames.items()}, trace.meta)

    left, right = repeated(1), repeated(2, slow="blocks.3")
    table = compare_times(with_kernel(left, 5.0), with_kernel(right, 900.0), by="op")
    pd.testing.assert_frame_equal(table, compare_times(left, right, by="op"))


def test_a_mistyped_choice_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"by='modul' is not a way to compare times; did you mean 'module'\?"):
        compare_times(timed({}), timed({}), by="modul")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="clock='cpu' .* known are device, host"):
        compare_times(timed({}), timed({}), clock="cpu")  # type: ignore[arg-type]


def test_empty_traces_have_no_rows() -> None:
    assert len(compare_times(timed(), timed())) == 0


def test_times_are_those_of_the_ops_the_medians_of_their_calls() -> None:
    left, right = repeated(1), repeated(2)
    for by in ("module", "op"):
        table = compare_times(left, right, by=by)
        for side, trace in (("left_us", left), ("right_us", right)):
            assert table[side].sum() == pytest.approx(trace.ops["self_time_us"].sum())
        assert table["difference_us"].tolist() == pytest.approx((table["right_us"] - table["left_us"]).tolist())
        assert table["drift_us"].tolist() == pytest.approx((table["difference_us"] - table["change_us"]).tolist())
