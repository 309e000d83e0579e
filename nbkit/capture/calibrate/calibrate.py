"""Measures how fast this machine runs ops, and keeps that for opcost(device="this machine")."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import inf
from statistics import median
from time import perf_counter_ns
from typing import Any

import pandas as pd
import torch
from torch import nn

from nbkit.capture.calibrate.clock import Clock
from nbkit.capture.calibrate.probes.elementwise import elementwise_probes
from nbkit.capture.calibrate.probes.probe import Place, Probe
from nbkit.capture.calibrate.probes.products import batched_probes, layer_probes, product_probes, square_probes
from nbkit.capture.calibrate.probes.rows import row_probes
from nbkit.capture.calibration import calibration_path
from nbkit.capture.cost.device_option import THIS_MACHINE, current_device
from nbkit.capture.cost.op_costs import OpCosts
from nbkit.capture.cost.opcost import opcost
from nbkit.devices.device import CALLS, Device
from nbkit.devices.stored import save_device
from nbkit.errors import OptionError
from nbkit.progress import Progress
from nbkit.trace.checks import is_number

WIDTH, BLOCKS = 8, 8
PHASES = ("forward", "backward", "optimizer")
# Bytes that the call before moves: from what the nearest caches hold to what no cache holds.
MOVED = (2**16, 2**19, 2**20, 2**21, 2**22, 2**23, 2**24, 2**25, 2**26)
REPEATS = 31
# Beyond float32, in which everything is measured: products and what is elementwise, or some products alone.
LESSER = (torch.bfloat16,)
PRODUCTS_ALONE = (torch.float16, torch.float64)
# Larger ones of an op and dtype are left out after a call that takes longer.
LONGEST_US = 50_000.0


def calibrate(*, device: str | None = None, seconds: float = 10.0, largest_bytes: int = 2**28) -> Device:
    """Measures how long ops take on this machine, stores that, and returns it as a Device; takes under half a minute.

    Products, convolutions, attention, elementwise ops, norms, reductions and copies are called on tensors of sizes from
    what launching alone takes to what fits no cache, in the dtypes that training uses; then opcost(device="this
    machine") predicts the time of a step. With one thread the time is that of the thread, which other processes
    disturb less. What was measured holds for this machine, torch and number of threads, and lies below NBKIT_CACHE,
    else `~/.cache/nbkit`; another call replaces it.

    Args:
        device: "cpu", or an accelerator such as "cuda"; by default the accelerator if there is one.
        seconds: how long all calls are repeated together; each runs a few times at least.
        largest_bytes: calls that move more are left out.

    Raises:
        OptionError: for a device that is not there, numbers below 0, and a cache folder that cannot be written.
    """
    for name, value in (("seconds", seconds), ("largest_bytes", largest_bytes)):
        if not is_number(value) or not 0 <= value < inf:
            raise OptionError(f"{name} must be a number from 0 up, got {value!r}; give one.")
    at = current_device(device)
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.autocast(at.type, enabled=False):
        with torch.no_grad():
            calls = _measured([*_probes(at)], Clock(at), seconds, largest_bytes)
            cold = cold_times_us(Clock(at), largest_bytes)
        launches = launch_times_us(Clock(at))
    measured = _device(at, calls, launches, cold)
    save_device(measured, calibration_path(at))
    return measured


def _probes(at: torch.device) -> chain[Probe]:
    places = [Place(at, dtype) for dtype in (torch.float32, *LESSER, *PRODUCTS_ALONE)]
    whole, lesser = places[:1], places[: 1 + len(LESSER)]
    return chain(
        chain.from_iterable(map(elementwise_probes, lesser)),
        chain.from_iterable(map(row_probes, whole)),
        chain.from_iterable(map(product_probes, lesser)),
        chain.from_iterable(map(batched_probes, lesser)),
        chain.from_iterable(map(square_probes if at.type == "cpu" else product_probes, places[len(lesser) :])),
        chain.from_iterable(map(layer_probes, lesser)),
    )


def _measured(probes: Sequence[Probe], clock: Clock, seconds: float, largest_bytes: int) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    large: set[tuple[Any, ...]] = set()
    told = Progress(
        lambda: f"nbkit.calibrate: {len(rows)} of {len(probes)} calls measured",
        done=lambda: len(rows) / len(probes),
    )
    with told:
        for probe in probes:
            kind = (probe.op, probe.place.dtype)
            if kind in large:
                continue
            flops, moved = _work(probe)
            if moved > largest_bytes:
                large.add(kind)
                continue
            time_us = clock.time_us(partial(probe.make, probe.place), moved, seconds / len(probes))
            if time_us > LONGEST_US:
                large.add(kind)
            dtype = str(probe.place.dtype).removeprefix("torch.")
            rows.append({"op": probe.name, "dtype": dtype, "flops": flops, "moved_bytes": moved, "time_us": time_us})
    return CALLS.frame(rows)


def _work(probe: Probe) -> tuple[int, int]:
    """Returns FLOPs and bytes of a probe's call, by the rules of opcost."""
    call, counted = probe.make(probe.place), OpCosts()
    counted.note(0, probe.op, call.args, call.keywords, call())
    (cost,) = counted.costs
    return cost.flops or 0, cost.read_bytes + cost.written_bytes


def _device(
    at: torch.device, calls: pd.DataFrame, launches: dict[str, float], cold: list[tuple[float, float]]
) -> Device:
    products = calls[calls["op"].isin(["aten.mm", "aten.bmm"])]
    if not len(products):
        raise OptionError("No call was measured of as few bytes; give largest_bytes of 16 KiB at least.")
    rates = (products["flops"] / products["time_us"] * 1e6).groupby(products["dtype"]).max()
    copies = calls[(calls["op"] == "aten.copy_") & (calls["dtype"] == "float32")]
    copied = copies.iloc[copies["moved_bytes"].argmax()]
    return Device(
        THIS_MACHINE,
        {str(dtype): float(rate) for dtype, rate in rates.items()},
        float(copied["moved_bytes"] / copied["time_us"] * 1e6),
        launches["forward"],
        launches,
        memory_bytes=_memory_bytes(at),
        is_queued=at.type != "cpu",
        cold_us=cold,
        calls=calls,
    )


def _memory_bytes(at: torch.device) -> int | None:
    if at.type != "cpu":
        properties = torch.get_device_module(at).get_device_properties(at)
        return getattr(properties, "total_memory", None)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # systems that do not say
        return None


def cold_times_us(clock: Clock, largest_bytes: int = MOVED[-1]) -> list[tuple[float, float]]:
    """Returns pairs of bytes that a call moved, and the microseconds that a view takes longer right after it.

    The view is made by a method, which needs less of Python than a call of an op. An accelerator launches from a host
    whose caches its ops do not pass through: the list is empty.
    """
    if not clock.is_cpu:
        return []
    look = torch.zeros(8, 8).t
    warm, found = _median_us(look, None), [(0.0, 0.0)]
    for moved in MOVED:
        if moved <= largest_bytes:
            spent = torch.zeros(moved // 8), torch.zeros(moved // 8)
            # What is measured is noisy, and what is emptied more takes no less.
            found.append((float(moved), max(_median_us(look, spent) - warm, found[-1][1])))
    return found


def _median_us(look: Callable[[], object], spent: tuple[torch.Tensor, torch.Tensor] | None) -> float:
    times = []
    for _ in range(REPEATS):
        if spent is not None:
            spent[0].copy_(spent[1])
        start = perf_counter_ns()
        look()
        times.append(perf_counter_ns() - start)
    return median(times) / 1e3


def launch_times_us(clock: Clock, repeats: int = 10) -> dict[str, float]:
    """Returns the microseconds per aten op in each phase of a training step of layers of 8 elements."""
    model = nn.Sequential(*(_Block() for _ in range(BLOCKS))).to(clock.device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.ones(1, WIDTH, device=clock.device)
    now = clock.now if clock.is_cpu else perf_counter_ns
    spans: list[list[int]] = []
    with torch.enable_grad():
        for _ in range(repeats):
            optimizer.zero_grad()
            times = [now()]
            loss = model(x).sum()
            times.append(now())
            loss.backward()
            times.append(now())
            optimizer.step()
            spans.append([after - before for before, after in zip(times, [*times[1:], now()], strict=True)])
        with opcost() as trace:
            model(x).sum().backward()
            optimizer.step()
    counts = trace.costs["phase"].value_counts()
    shortest = (min(span) / 1e3 for span in zip(*spans, strict=True))
    return {phase: float(time / counts[phase]) for phase, time in zip(PHASES, shortest, strict=True)}


class _Block(nn.Module):
    """Holds the modules that most steps are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, WIDTH) -> (B, WIDTH)
        y = self.first(self.norm(x)).view(len(x), 2, -1).transpose(1, 2)
        out: torch.Tensor = x + self.second(torch.nn.functional.gelu(y.reshape(len(x), -1)))
        return out
