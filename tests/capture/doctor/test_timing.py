"""What opdoctor makes of runs that are timed by themselves."""

import pytest

from nbkit.capture.doctor.timing import memory_of, times_of, with_times
from nbkit.schema import MEMORY
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops, make_tensors


def test_what_kernels_take_is_no_time_of_the_host():
    whole = {"level": "range", "op": "step", "phase": "other", "self_time_us": 1.0, "total_time_us": 10.0}
    forward = {"op": "aten.mm.default", "parent_id": 0, "model": "Net", "module": "a", "self_time_us": 3.0}
    backward = {"op": "aten.mul.Tensor", "parent_id": 0, "model": "Net", "module": "b", "self_time_us": 6.0}
    backward["phase"] = "backward"
    kernel = {"level": "kernel", "op": "gemm", "parent_id": 1, "module": "a", "self_time_us": 90.0, "device": "cuda:0"}
    times = times_of(Trace({"ops": make_ops(whole, forward, backward, kernel)}))
    assert times == {
        "time_us": 10.0,
        "runs": 1,
        "phases": {"forward": 3.0, "backward": 6.0, "other": 1.0},
        "slowest_ops": [["aten.mul.Tensor", 6.0]],
        "slowest_modules": [["Net", "b", 6.0], ["Net", "a", 3.0]],
    }


@pytest.mark.parametrize(
    ("allocated", "peak", "held", "device"),
    [
        ((("cpu", 10), ("cpu", 4)), 74, 64, None),
        ((("cpu", -8),), 64, 64, None),
        ((("cuda:0", 30), ("cuda:0", 20)), 30, None, None),
        ((("cpu", 10), ("cuda:0", 30), ("cuda:1", 40)), 40, None, "cuda:1"),
        ((("cuda:0", -8),), None, None, None),
        ((), None, None, None),
    ],
)
def test_the_peak_is_that_of_a_device_that_is_named_and_never_below_zero(allocated, peak, held, device):
    rows = [{"device": name, "allocated_bytes": count, "time_us": 1.0, "delta_bytes": 1} for name, count in allocated]
    tensors = make_tensors((0, "input", 1), (0, "output", 2))
    memory = memory_of({"memory": MEMORY.frame(rows), "tensors": tensors, "ops": make_ops({})})
    is_least = memory.pop("peak_is_least", False)
    assert is_least == (held is not None and min(count for name, count in allocated if name == "cpu") < 0)
    assert memory == {"peak_bytes": peak, "held_bytes": held, "peak_device": device}


def test_calls_that_were_not_timed_share_what_is_left_of_the_step():
    call = {"level": "api", "op": "torch.mm", "self_time_us": 50.0, "total_time_us": 90.0}
    product = {"op": "aten.mm.default", "parent_id": 0, "self_time_us": 40.0}
    other = {"op": "aten.sin.default", "start_us": 95.0, "self_time_us": 30.0}
    whole = {"level": "range", "op": "step", "self_time_us": 6.0, "total_time_us": 10.0}
    timed = make_ops(whole, {"op": "aten.mm.default", "parent_id": 0, "self_time_us": 4.0})
    frames, notes = with_times({"ops": make_ops(call, product, other), "memory": MEMORY.frame()}, Trace({"ops": timed}))
    ops, ratio = frames["ops"], 6 / (50 + 30 + 5)  # 5 us lie between the calls
    assert ops["self_time_us"].tolist() == pytest.approx([50 * ratio, 4.0, 30 * ratio])
    assert (ops["start_us"] + ops["total_time_us"]).max() == pytest.approx(10.0)  # the step's
    assert notes == ["2 calls have no time of their own in the timed runs, and share what is left of the step's."]
