"""Predicts the time of each op of a step from its FLOPs and bytes, and names what bounds it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.compat.text_dtype import TEXT
from nbkit.devices.device import Device
from nbkit.devices.measured_calls import MeasuredCalls
from nbkit.schema import COSTS

# tensor.item(): it makes no tensor, and takes less than to launch an op that does.
ITEM = "aten._local_scalar_dense"
# Which ops before one decide what it finds in the caches: the last, the one before that, and so on.
BEFORE = range(1, 5)
Floats = npt.NDArray[np.float64]
COMPUTE, MEMORY, LAUNCH, COMMUNICATION = "compute", "memory", "launch", "communication"
# cuDNN computes them in TF32 unless told otherwise (torch.backends.cudnn.allow_tf32).
CONVOLUTIONS = r"^aten\.\w*convolution"
# An op whose arithmetic takes longer than to move its bytes twice is bound by arithmetic, where that is measured.
SLOWER_THAN_MOVING = 2.0


def with_times(costs: pd.DataFrame, device: Device, *, products_in_tf32: bool = False) -> pd.DataFrame:
    """Returns the frame `costs` with `time_us` and `bound` of each op on `device`.

    Without measured calls the kernel of an op takes the longer of its arithmetic (flops over the peak of its dtype,
    elementwise ones over that of float32) and its traffic (bytes over bandwidth); a view has none. After Williams,
    Waterman and Patterson, "Roofline", CACM 52(4), 2009. With measured calls it takes the time between those of like
    size, or the rate of the nearest products. A collective takes its `communication_bytes` over the link's bandwidth;
    null where that is not known. Launching counts in addition where the device does not compute meanwhile, and takes
    longer after ops that moved many bytes (`cold_us`). Where ops are queued, the host launches them one after the other
    in the order of the rows, and the device runs each when it is launched and the one before it is done: `time_us` is
    by how much an op delays the end, so that the sum is the time of the step. `bound` is "compute", "memory", "launch"
    or "communication".

    Args:
        costs: the frame `costs` of an opcost trace.
        device: what it is to run on, wherever the step was counted.
        products_in_tf32: whether matrix products in float32 run in TF32, as after
            `torch.set_float32_matmul_precision("high")`; convolutions do on a device that has it.
    """
    costs = COSTS.check(costs)
    parts = _parts(costs, device, products_in_tf32)
    kernel = np.fmax(parts[COMPUTE], parts[MEMORY])
    if device.calls is not None:
        known = MeasuredCalls(device.calls)
        kernel = known.times_us(costs)
        moving = known.times_us(costs.assign(op="aten.add.Tensor"))
        is_slow = (parts[COMPUTE] == 0) & (kernel > SLOWER_THAN_MOVING * moving)
        parts[COMPUTE] = np.where(is_slow & (parts[MEMORY] > 0), kernel, parts[COMPUTE])
    sent = costs["communication_bytes"].to_numpy(np.float64, na_value=np.nan)
    is_sent = ~np.isnan(sent)
    kernel[is_sent] = sent[is_sent] / (device.link_bytes_per_s or np.nan) * 1e6
    waits = _waits(kernel, parts[LAUNCH]) if device.is_queued else parts[LAUNCH]
    # Launching bounds what waits for it longer than it runs, and what does nothing.
    order = (MEMORY, COMPUTE)
    sides = pd.Series(np.array(order)[np.argmax(np.stack([parts[side] for side in order]), axis=0)], dtype=TEXT)
    times = kernel + waits
    sides = sides.mask((waits > kernel) | (kernel == 0), LAUNCH).mask(is_sent, COMMUNICATION)
    return costs.assign(time_us=times, bound=sides.mask(np.isnan(times)).array)


def _waits(kernel: Floats, launch: Floats) -> Floats:
    """Returns how long the device waits for the launch of each op, which the host does one after the other."""
    runs = np.nan_to_num(kernel)
    launched, before = np.cumsum(launch), np.cumsum(runs) - runs
    # An op starts when it is launched and the device is free: end = max(end of the one before, launched) + kernel.
    starts = np.maximum.accumulate(launched - before) + before
    return np.asarray(np.maximum(np.diff(starts + runs, prepend=0.0) - runs, 0.0), np.float64)


def _parts(costs: pd.DataFrame, device: Device, products_in_tf32: bool) -> dict[str, Floats]:
    """Returns what each side takes alone, in microseconds."""
    names = costs["dtype"].to_numpy(object)
    in_tf32 = costs["op"].str.contains(CONVOLUTIONS).to_numpy(bool) | products_in_tf32
    if "tf32" in device.flops_per_s:
        names = np.where(in_tf32 & (names == "float32"), "tf32", names)
    known = {name: device.peak(name if isinstance(name, str) else None) for name in set(names)}
    compute = _numbers(costs["flops"]) / np.array([known[name] for name in names], np.float64)
    compute = compute + _numbers(costs["elementwise_flops"]) / device.peak("float32")
    moved = (costs["read_bytes"] + costs["written_bytes"]).to_numpy(np.float64)
    launch = _launches(costs, device) + _cold(moved, device)
    return {COMPUTE: compute * 1e6, MEMORY: moved / device.bytes_per_s * 1e6, LAUNCH: launch}


def _launches(costs: pd.DataFrame, device: Device) -> Floats:
    """Returns what launching each op takes in its phase, beyond what its measured calls hold already.

    Calls that a device ran from its queue hold none of it.
    """
    by_phase = {phase: device.phase_launch_us.get(phase, device.launch_us) for phase in costs["phase"].unique()}
    launch = costs["phase"].map(by_phase).fillna(device.launch_us).to_numpy(np.float64)
    if device.calls is not None and not device.is_queued:
        makes = (device.calls["moved_bytes"] > 0) & (device.calls["op"] != ITEM)
        bare = device.calls.loc[makes, "time_us"].min()
        launch = np.maximum(launch - bare, 0.0)
    return np.asarray(launch, np.float64)


def _cold(moved: Floats, device: Device) -> Floats:
    """Returns how much longer each op takes to begin after those before it, which have emptied the caches.

    Of two ops after a large one, the second finds half of what it needs where the first has left it.
    """
    if not device.cold_us or device.is_queued:
        return np.zeros(len(moved))
    sizes, times = np.array(device.cold_us, np.float64).T
    after = np.interp(moved, sizes, times)
    late = [np.concatenate([np.zeros(back), after])[: len(moved)] * 0.5 ** (back - 1) for back in BEFORE]
    return np.asarray(np.max(late, axis=0), np.float64)


def _numbers(values: Any) -> Floats:
    return np.asarray(values.to_numpy(np.float64, na_value=0.0), np.float64)
