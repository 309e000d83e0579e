"""Devices: published peaks by name, one's own, and a file that holds one."""

from math import inf, nan

import pandas as pd
import pytest

from nbkit.devices.device import CALLS, Device
from nbkit.devices.measured_calls import MeasuredCalls
from nbkit.devices.peaks import DEVICES, device_named
from nbkit.devices.stored import load_device, save_device
from nbkit.errors import OptionError, SchemaError


def tiny(**options):
    return Device(**{"name": "tiny", "flops_per_s": {"float32": 1e9}, "bytes_per_s": 1e8, "launch_us": 2.0, **options})


@pytest.mark.parametrize(
    ("name", "peak", "gigabytes_per_s", "gib"),
    [
        ("h100", 989.5, 3350, 80),
        ("H100 SXM", 989.5, 3350, 80),
        ("h100-pcie", 756.5, 2000, 80),
        ("NVIDIA A100", 312.0, 2039, 80),
        ("A100-40GB", 312.0, 1555, 40),
        ("MI300X", 1307.4, 5300, 192),
    ],
)
def test_a_published_device_is_found_in_any_spelling(name, peak, gigabytes_per_s, gib):
    device = device_named(name)
    found = (device.peak("bfloat16") / 1e12, device.bytes_per_s / 1e9, device.memory_bytes / 2**30)
    assert found == pytest.approx((peak, gigabytes_per_s, gib))


def test_the_peaks_of_a_device_are_in_order():
    """A lesser dtype is never slower, and tf32 lies between float32 and half precision."""
    for device in DEVICES.values():
        order = [device.flops_per_s[name] for name in ("float64", "float32", "tf32", "float16", "float8") if name in
                 device.flops_per_s]  # fmt: skip
        assert order == sorted(order), device.name


def test_an_unknown_device_is_refused_with_those_that_are_close():
    with pytest.raises(
        OptionError, match=r"'H10O' is not known \(nbkit\.Device\(\.\.\.\) describes another\); did you mean 'H100'"
    ):
        device_named("H10O")


def test_a_dtype_without_a_peak_computes_as_float32():
    device = tiny(flops_per_s={"float32": 1e9, "float8": 4e9})
    assert [device.peak(name) for name in ("float32", "complex64", None, "float8_e4m3fn")] == [1e9, 1e9, 1e9, 4e9]


@pytest.mark.parametrize("value", [0, -1.0, nan, inf, True, "1e9"])
@pytest.mark.parametrize("name", ["bytes_per_s", "launch_us", "link_bytes_per_s"])
def test_a_rate_is_a_number_above_0(name, value):
    with pytest.raises(OptionError, match=rf"{name}=.* of 'tiny' is no finite number above 0"):
        tiny(**{name: value})


@pytest.mark.parametrize("value", [0, nan, "1"])
def test_the_launch_time_of_a_phase_is_a_number_above_0(value):
    with pytest.raises(OptionError, match=r"phase_launch_us\['backward'\]=.* of 'tiny' is no finite number above 0"):
        tiny(phase_launch_us={"forward": 1.0, "backward": value})


def test_measured_calls_have_their_columns():
    calls = CALLS.frame([{"op": "aten.add", "dtype": "float32", "flops": 0, "moved_bytes": 8, "time_us": 1.5}])
    with pytest.raises(SchemaError, match="calls"):
        tiny(calls=calls.drop(columns="time_us"))
    with pytest.raises(SchemaError, match="flops"):
        tiny(calls=calls.astype({"flops": "float64"}))


@pytest.mark.parametrize(
    "pairs", [[(1e6, 1.0), (1e5, 2.0)], [(1e6, 1.0), (1e6, 2.0)], [(1e6, -1.0)], [(1e6,)], [(nan, 1.0)], [1e6], "12", 1]
)
def test_times_of_cold_caches_are_pairs_in_order(pairs):
    with pytest.raises(OptionError, match=r"cold_us=.* of 'tiny' are no pairs of bytes, in ascending order"):
        tiny(cold_us=pairs)


def test_a_device_has_a_peak():
    with pytest.raises(OptionError, match="'tiny' has no FLOP/s; give those of one dtype"):
        tiny(flops_per_s={})


def test_a_file_holds_a_device(tmp_path):
    calls = CALLS.frame([{"op": "aten.add", "dtype": "float32", "flops": 0, "moved_bytes": 8, "time_us": 1.5}])
    device = tiny(calls=calls, phase_launch_us={"backward": 3.0}, is_queued=False, cold_us=[(0.0, 0.0), (1e6, 2.5)])
    save_device(device, tmp_path / "made" / "it.json")
    found = load_device(tmp_path / "made" / "it.json")
    assert found.peaks() == device.peaks() and found.calls is not None
    assert found.calls.equals(calls)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"name": "x", "calls": null}', '{"calls": {"op": [1]}, "name": "x"}']
)
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "it.json").write_text(text)
    with pytest.raises(OptionError, match=r"it\.json does not hold what nbkit\.calibrate\(\) wrote; run that again"):
        load_device(tmp_path / "it.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"file cannot be written: .*; set NBKIT_CACHE"):
        save_device(tiny(), tmp_path / "file" / "it.json")


def test_a_measured_op_of_another_library_stands_for_itself_and_others_for_those_that_move_as_much():
    row = {"dtype": "float32", "flops": 0, "moved_bytes": 8}
    times = {"aten.add": 1.5, "mylib.twice.default": 7.0}
    calls = CALLS.frame([{**row, "op": op, "time_us": time_us} for op, time_us in times.items()])
    costs = pd.DataFrame({"op": ["mylib.twice.default", "mylib.other.default"], "dtype": "float32"})
    costs = costs.assign(read_bytes=4, written_bytes=4, flops=pd.array([0, 0], "Int64"))
    assert MeasuredCalls(calls).times_us(costs).tolist() == [7.0, 1.5]


def test_calls_of_another_dtype_or_op_stand_for_those_that_were_not_measured():
    added = {"op": "aten.add", "dtype": "float32", "flops": 0}
    calls = CALLS.frame([{**added, "moved_bytes": 8, "time_us": 1.5}, {**added, "moved_bytes": 32, "time_us": 4.5}])
    costs = pd.DataFrame({"op": "aten.add", "dtype": ["bool", "float8_e4m3fn", "float32"]})
    costs = costs.assign(read_bytes=4, written_bytes=4, flops=pd.array([0, 0, 0], "Int64"))
    assert MeasuredCalls(calls).times_us(costs).tolist() == [4.5, 4.5, 1.5]  # as many elements of four bytes
    other = calls.assign(op="aten.mm")
    assert MeasuredCalls(other).times_us(costs.assign(op="mylib.other.default")).tolist() == [1.5] * 3
