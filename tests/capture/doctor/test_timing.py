"""What opdoctor makes of runs that are timed by themselves."""

from nbkit.capture.doctor.timing import times_of
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops


def test_what_kernels_take_is_no_time_of_the_host():
    whole = {"level": "range", "op": "step", "phase": "other", "self_time_us": 1.0, "total_time_us": 10.0}
    forward = {"op": "aten.mm.default", "parent_id": 0, "module": "a", "self_time_us": 3.0}
    backward = {"op": "aten.mul.Tensor", "parent_id": 0, "module": "b", "phase": "backward", "self_time_us": 6.0}
    kernel = {"level": "kernel", "op": "gemm", "parent_id": 1, "module": "a", "self_time_us": 90.0, "device": "cuda:0"}
    times = times_of(Trace({"ops": make_ops(whole, forward, backward, kernel)}))
    assert times == {
        "time_us": 10.0,
        "runs": 1,
        "phases": {"forward": 3.0, "backward": 6.0, "other": 1.0},
        "slowest_op": ("aten.mul.Tensor", 6.0),
        "slowest_module": ("b", 6.0),
    }
