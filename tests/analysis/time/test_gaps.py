"""Time that no op covers."""

import pandas as pd
import pytest

from nbkit.analysis.time.gaps import gaps_by_module, is_synchronising, largest_gaps, time_by_kind
from tests.support.fakes import make_ops


def row(start: float, total: float, own: float, parent: int | None, op: str, **more: object) -> dict[str, object]:
    return {"start_us": start, "total_time_us": total, "self_time_us": own, "parent_id": parent, "op": op, **more}


def step_ops() -> pd.DataFrame:
    """A step of 100 us with a module of 25 (mm is 20 of it, 4 of those its launch) and an item() of 30 (25 waiting)."""
    outside = {"phase": "other"}
    fc = {"model": "Net", "module": "fc"}
    return make_ops(
        row(0, 100, 45, None, "step", level="range", **outside),
        row(10, 25, 5, 0, "Linear", level="module", **fc),
        row(12, 20, 16, 1, "aten.mm.default", **fc),
        row(13, 4, 4, 2, "cudaLaunchKernel", level="runtime", **fc),
        row(50, 30, 5, 0, "aten.item.default", **outside),
        row(51, 25, 25, 4, "cudaStreamSynchronize", level="runtime", **outside),
    )


def two_threads() -> pd.DataFrame:
    """The main thread waits in backward() while thread 1 runs an op of 30 us."""
    return make_ops(
        row(0, 50, 10, None, "step", level="range", phase="other"),
        row(5, 40, 40, 0, "torch.autograd.backward", level="api", phase="backward"),
        row(8, 30, 30, None, "aten.mm.default", phase="backward", thread=1),
    )


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaStreamSynchronize", True),
        ("cudaDeviceSynchronize", True),
        ("cudaEventSynchronize", True),
        ("hipDeviceSynchronize", True),
        ("cudaMemcpy", True),
        ("cudaMemcpyAsync", False),
        ("cudaLaunchKernel", False),
        ("cudaStreamWaitEvent", False),
    ],
)
def test_synchronising_calls_are_known_by_name(name: str, waits: bool) -> None:
    assert is_synchronising(make_ops({"level": "runtime", "op": name}, {"op": name})).tolist() == [waits, False]


def compiled_step(*kernels: dict[str, object]) -> pd.DataFrame:
    """A step of 100 us with a compiled region of 60, its graph 50 of it, an op in that 20."""
    return make_ops(
        row(0, 100, 40, None, "step", level="range", phase="other"),
        row(10, 60, 10, 0, "Torch-Compiled Region: 0/0", level="range", phase="other"),
        row(12, 50, 30, 1, "CompiledFunction", level="range", phase="other"),
        row(13, 20, 20, 2, "aten.addmm.out", phase="other"),
        *kernels,
    )


def kinds(ops: pd.DataFrame) -> dict[str, float]:
    times = time_by_kind(ops)
    return dict(zip(times["kind"], times["self_time_us"], strict=True))


def test_the_self_time_of_a_compiled_region_is_that_of_its_fused_kernels() -> None:
    assert kinds(compiled_step()) == {"python": 40, "compiled": 40, "op": 20}


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ({"op": "graph_0_cpp_fused_gelu_1"}, {"python": 80, "op": 25}),
        ({"op": "cudaLaunchKernel", "level": "runtime"}, {"python": 80, "op": 20, "launch": 5}),
    ],
)
def test_where_its_kernels_are_rows_what_is_left_of_a_region_is_python(kernel, expected) -> None:
    assert kinds(compiled_step(row(40, 5, 5, 2, **{"phase": "other", **kernel}))) == expected


def test_a_block_of_another_name_is_no_compiled_region() -> None:
    ops = compiled_step()
    ops["op"] = ops["op"].replace({"Torch-Compiled Region: 0/0": "region", "CompiledFunction": "MyCompiledFunction"})
    assert kinds(ops) == {"python": 80, "op": 20}


def test_the_kinds_share_the_step() -> None:
    times = time_by_kind(step_ops())
    found = {(phase, kind): time for phase, kind, time in times[["phase", "kind", "self_time_us"]].to_numpy().tolist()}
    assert found == {("other", "python"): 45, ("other", "wait"): 25, ("other", "op"): 5,
                     ("forward", "op"): 16, ("forward", "python"): 5, ("forward", "launch"): 4}  # fmt: skip
    assert times["self_fraction"].sum() == 1.0


def test_gaps_by_module_name_module_and_kind() -> None:
    gaps = gaps_by_module(step_ops()).astype({"module": object}).fillna("-")
    assert gaps[["module", "kind", "self_time_us"]].to_numpy().tolist() == [
        ["-", "python", 45], ["-", "wait", 25], ["fc", "python", 5], ["fc", "launch", 4]]  # fmt: skip
    assert gaps["self_fraction"].tolist() == [0.45, 0.25, 0.05, 0.04]


def test_largest_gaps_have_the_ops_around_them() -> None:
    gaps = largest_gaps(step_ops())
    assert gaps[["start_us", "gap_us"]].to_numpy().tolist() == [[80, 20], [32, 18], [0, 12]]
    assert gaps["previous_op"].fillna("-").tolist() == ["aten.item.default", "aten.mm.default", "-"]
    assert gaps["next_op"].fillna("-").tolist() == ["-", "aten.item.default", "aten.mm.default"]
    assert gaps["next_op_id"].fillna(-1).tolist() == [-1, 4, 2]
    assert gaps["phase"].tolist() == ["other", "other", "other"]
    assert len(largest_gaps(step_ops(), count=2)) == 2


def test_waiting_for_another_thread_is_no_python_time() -> None:
    times = time_by_kind(two_threads())
    assert times[["thread", "kind", "self_time_us"]].to_numpy().tolist() == [
        [0, "thread", 30], [0, "python", 10], [0, "python", 10], [1, "op", 30]]  # fmt: skip
    assert times.loc[times["kind"] != "thread", "self_fraction"].sum() == 1.0
    assert largest_gaps(two_threads()).iloc[0][["gap_us", "other_threads_us"]].tolist() == [50.0, 30.0]


def test_a_trace_without_levels_of_python_has_gaps_between_its_ops() -> None:
    gaps = largest_gaps(make_ops(row(0, 5, 5, None, "aten.a"), row(9, 5, 5, None, "aten.b")))
    assert gaps[["start_us", "gap_us", "previous_op", "next_op"]].to_numpy().tolist() == [[5, 4, "aten.a", "aten.b"]]
    assert gaps["module"].isna().all()


def test_no_ops_have_no_gaps() -> None:
    assert len(largest_gaps(make_ops())) == len(time_by_kind(make_ops())) == len(gaps_by_module(make_ops())) == 0
