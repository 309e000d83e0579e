"""The time of an op is that of its longest side; what was measured goes before peaks."""

import pytest

from nbkit.devices.device import CALLS
from nbkit.devices.peaks import device_named
from nbkit.devices.roofline import with_times
from nbkit.schema import COSTS
from tests.devices.test_device import tiny

BLANK = {"op_id": 0, "op": "aten.add.Tensor", "phase": "forward", "dtype": "float32", "flops": 0}


def costs(*rows):
    return COSTS.frame([{**BLANK, "read_bytes": 0, "written_bytes": 0, **row} for row in rows])


def timed(device, *rows, **options):
    frame = with_times(costs(*rows), device, **options)
    return frame["time_us"].tolist(), frame["bound"].tolist()


# tiny: 1e9 FLOP/s, 1e8 bytes/s, 2 us to launch
COMPUTE = {"op": "aten.mm.default", "flops": 10_000, "read_bytes": 300, "written_bytes": 100}  # 10 us, 4 us
MEMORY = {"read_bytes": 400, "written_bytes": 200}  # 6 us
LAUNCH = {"read_bytes": 50, "written_bytes": 50}  # 1 us
VIEW = {"op": "aten.view.default"}


def test_an_op_takes_as_long_as_its_longest_side():
    """The first one waits for its launch; those after it are launched while it runs."""
    times, bounds = timed(tiny(), COMPUTE, MEMORY, LAUNCH, VIEW)
    assert times == pytest.approx([2.0 + 10.0, 6.0, 1.0, 0.0])
    assert bounds == ["compute", "memory", "memory", "launch"]


def test_a_device_that_is_faster_than_its_launches_waits_for_them():
    """Launched at 2, 4, 6, 8, 10, 12 us: the fourth waits for three views, the fifth for none, the sixth for one."""
    times, bounds = timed(tiny(), LAUNCH, VIEW, VIEW, LAUNCH, MEMORY, LAUNCH)
    assert times == pytest.approx([3.0, 1.0, 2.0, 3.0, 7.0, 1.0])
    assert sum(times) == pytest.approx(10 + 6 + 1)
    assert bounds == ["launch", "launch", "launch", "launch", "memory", "memory"]


def test_a_device_that_waits_for_each_launch_adds_it():
    device = tiny(is_queued=False, phase_launch_us={"backward": 5.0})
    times, _ = timed(device, COMPUTE, MEMORY, VIEW, {**MEMORY, "phase": "backward"})
    assert times == pytest.approx([12.0, 8.0, 2.0, 11.0])


def test_a_product_of_an_h100_takes_the_peak_of_its_dtype():
    """4096^3 in float32, TF32 and bfloat16, after the datasheet: 67, 494.5 and 989.5 TFLOP/s."""
    work = {"op": "aten.mm.default", "flops": 2 * 4096**3, "read_bytes": 2**20, "written_bytes": 2**20}
    device = device_named("H100")
    float32, _ = timed(device, work)
    tf32, _ = timed(device, work, products_in_tf32=True)
    convolution, _ = timed(device, {**work, "op": "aten.convolution.default"})
    bfloat16, _ = timed(device, {**work, "dtype": "bfloat16"})
    expected = [2 * 4096**3 / tera / 1e6 + device.launch_us for tera in (67, 494.5, 494.5, 989.5)]
    assert [*float32, *tf32, *convolution, *bfloat16] == pytest.approx(expected)


def test_unknown_flops_leave_the_time_to_the_bytes():
    assert timed(tiny(), {**MEMORY, "flops": None}) == (pytest.approx([2.0 + 6.0]), ["memory"])


def test_a_collective_takes_what_its_link_takes():
    sent = {"op": "c10d.allreduce_.default", "communication_bytes": 1_000, "read_bytes": 10**6}
    assert timed(tiny(link_bytes_per_s=1e8), sent) == (pytest.approx([10.0 + 2.0]), ["communication"])
    unknown = with_times(costs(sent), tiny())
    assert unknown[["time_us", "bound"]].isna().all(axis=None)


def test_a_frame_without_rows_has_no_times():
    assert timed(tiny()) == ([], [])


def called(*rows):
    names = ("op", "dtype", "flops", "moved_bytes", "time_us")
    return CALLS.frame([dict(zip(names, row, strict=True)) for row in rows])


ADDED = [("aten.add", "float32", 0, size, time) for size, time in ((100, 2.0), (10_000, 4.0), (1_000_000, 400.0))]
MULTIPLIED = [("aten.mm", "float32", flops, 1_000, time) for flops, time in ((1_000, 5.0), (1_000_000, 50.0))]


def measured(*rows, **options):
    return tiny(calls=called(*ADDED, *MULTIPLIED, *rows), is_queued=False, launch_us=2.0, **options)


def test_a_measured_size_takes_what_it_took_and_others_lie_between():
    times, _ = timed(measured(), *({"read_bytes": size} for size in (100, 10_000, 1_000, 2_000_000)))
    assert times[:2] == pytest.approx([2.0, 4.0])
    assert 2.0 < times[2] < 4.0 and times[3] == pytest.approx(800.0)


def test_launching_beyond_what_was_measured_is_added_by_phase():
    device = measured(phase_launch_us={"backward": 7.0})
    assert timed(device, {"read_bytes": 100, "phase": "backward"})[0] == pytest.approx([7.0])


def test_a_call_that_makes_no_tensor_says_nothing_of_launching():
    device = measured(("aten._local_scalar_dense", "float32", 0, 4, 0.1), phase_launch_us={"backward": 7.0})
    assert timed(device, {"read_bytes": 100, "phase": "backward"})[0] == pytest.approx([7.0])


def test_ops_after_one_that_emptied_the_caches_begin_later_and_each_by_half_as_much():
    """Of what 1e6 bytes cost, 5e5 bytes cost half; what costs most counts, and not the sum."""
    small = {"read_bytes": 100}
    device = measured(cold_us=[(0.0, 0.0), (1e6, 8.0)])
    times, bounds = timed(device, {"read_bytes": 10**6}, *[small] * 6)
    assert times == pytest.approx([400.0, 10.0, 6.0, 4.0, 3.0, 2.0, 2.0], rel=0.01)
    assert bounds[1:3] == ["launch", "launch"]
    half = {"read_bytes": 5 * 10**5}
    after_both, after_one = (timed(device, *rows, small)[0][-1] for rows in ([half, half], [small, half]))
    assert after_both == after_one == pytest.approx(6.0, rel=0.01)


def test_a_host_that_launches_ahead_does_not_wait_for_its_caches():
    rows = {"read_bytes": 10**6}, {"read_bytes": 100}
    cold, warm = (timed(tiny(cold_us=pairs), *rows)[0] for pairs in ([(0.0, 0.0), (1e6, 8.0)], ()))
    assert cold == warm


def test_a_product_takes_the_rate_of_the_nearest():
    times, bounds = timed(measured(), {"op": "aten.addmm.default", "flops": 1_000_000, "read_bytes": 1_000})
    assert times == pytest.approx([50.0], rel=0.01) and bounds == ["compute"]
    small, _ = timed(measured(), {"op": "aten.mm.default", "flops": 10, "read_bytes": 1_000})
    assert small == pytest.approx([5.0])  # no product was faster than the fastest


@pytest.mark.parametrize(
    ("op", "stands"),
    [
        ("aten.exp.default", 9.0),  # itself
        ("aten.exp_.default", 9.0),  # in place
        ("aten._foreach_exp.default", 9.0),
        ("aten.exp2.default", 9.0),  # of its family
        ("aten.sub.Tensor", 2.0),  # of that of add
        ("mylib.anything.default", 2.0),  # of none
    ],
)
def test_an_op_takes_what_one_like_it_took(op, stands):
    device = measured(("aten.exp", "float32", 0, 100, 9.0))
    times, bounds = timed(device, {"op": op, "read_bytes": 100})
    assert times == pytest.approx([stands])
    assert bounds == ["compute" if stands == 9.0 else "memory"]  # what moves as many bytes takes less than half of it


def test_another_dtype_takes_what_as_many_elements_took():
    times, _ = timed(measured(), {"dtype": "bfloat16", "read_bytes": 5_000})
    assert times == pytest.approx([4.0])
