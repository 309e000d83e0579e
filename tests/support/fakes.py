"""Synthetic traces: tiny literal ones for unit tests, large ones built with numpy for the views."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from nbkit.schema import MEMORY, MODULES, OPS, SAMPLES, TENSORS, TIMINGS
from nbkit.trace.trace import Trace

LINEAR = "torch.nn.functional.linear"
KINDS = ("aten.addmm.default", "aten.mm.default", "aten.mul.Tensor", "aten.silu.default", "aten.view.default")
PARTS = ("ln1", "att.key", "att.value", "att.output", "ln2", "ffn.key", "ffn.value")
STATISTICS = {"mean": 0.01, "std": 1.0, "min": -4.2, "max": 4.1, "norm": 64.3}
PHASES = ("forward", "backward", "optimizer")


def make_ops(*rows: dict[str, Any]) -> pd.DataFrame:
    """An ops frame from partial rows; what a row leaves out is filled in (an aten forward op of 1 us)."""
    filled = []
    for op_id, row in enumerate(rows):
        time_us = row.get("total_time_us", row.get("self_time_us", 1.0))
        base = {"op_id": op_id, "level": "aten", "op": "aten.add.Tensor", "phase": "forward", "step": 0, "thread": 0}
        times = {"start_us": float(op_id), "total_time_us": time_us, "self_time_us": time_us, "device": "cpu"}
        filled.append({**base, **times, **row})
    return OPS.frame(filled)


def make_tensors(*rows: tuple[int, str, int]) -> pd.DataFrame:
    """A tensors frame from (op_id, role, tensor_id); positions count up per op and role."""
    filled, positions = [], dict[tuple[int, str], int]()
    for op_id, role, tensor_id in rows:
        position = positions.get((op_id, role), 0)
        positions[op_id, role] = position + 1
        base = {"op_id": op_id, "role": role, "position": position, "tensor_id": tensor_id, "storage_id": tensor_id}
        layout = {"dtype": "float32", "shape": "[2, 8]", "stride": "[8, 1]", "device": "cpu", "numel": 16}
        filled.append({**base, **layout, "size_bytes": 64, "requires_grad": False})
    return TENSORS.frame(filled)


def make_modules(*paths: str, model: str = "Net") -> pd.DataFrame:
    """A modules frame of one model with these paths."""
    return MODULES.frame([_module_row(path, model) for path in paths])


def make_trace(
    ops: pd.DataFrame, tensors: pd.DataFrame | None = None, modules: pd.DataFrame | None = None, **meta: Any
) -> Trace:
    """A complete trace of these frames with plausible meta; `meta` overrides."""
    frames = {
        "ops": ops,
        "tensors": TENSORS.frame() if tensors is None else tensors,
        "modules": MODULES.frame() if modules is None else modules,
    }
    return Trace(frames, {**_meta(len(ops)), **meta})


def small_trace(**meta: Any) -> Trace:
    """Eight ops of a two-layer model: forward, backward and optimizer, with dataflow and one in-place op."""
    fc = {"model": "Net", "module": "fc", "module_call": 0}
    ops = make_ops(
        {"level": "api", "op": LINEAR, **fc, "total_time_us": 50.0, "self_time_us": 10.0, "source": "train.py:7"},
        {"parent_id": 0, "op": "aten.addmm.default", **fc, "self_time_us": 40.0, "flops": 512, "source": "train.py:7"},
        {"op": "aten.relu.default", "model": "Net", "module": "", "self_time_us": 5.0, "source": "train.py:8"},
        {"op": "aten.sum.default", "self_time_us": 3.0, "source": "train.py:9"},
        {
            "level": "api",
            "op": "torch.Tensor.backward",
            "phase": "backward",
            "total_time_us": 90.0,
            "self_time_us": 20.0,
            "source": "train.py:10",
        },
        {
            "parent_id": 4,
            "op": "aten.threshold_backward.default",
            "phase": "backward",
            "model": "Net",
            "module": "",
            "forward_op_id": 2,
            "self_time_us": 8.0,
            "thread": 1,
        },
        {
            "parent_id": 4,
            "op": "aten.mm.default",
            "phase": "backward",
            **fc,
            "forward_op_id": 1,
            "self_time_us": 62.0,
            "thread": 1,
        },
        {"op": "aten.add_.Tensor", "phase": "optimizer", "self_time_us": 2.0, "source": "train.py:11"},
    )
    tensors = make_tensors(
        (1, "input", 100),
        (1, "input", 101),
        (1, "output", 102),
        (2, "input", 102),
        (2, "output", 103),
        (3, "input", 103),
        (3, "output", 104),
        (5, "input", 103),
        (5, "output", 105),
        (6, "input", 105),
        (6, "output", 106),
        (7, "input", 101),
        (7, "input", 106),
        (7, "output", 101),
    )
    tensors.loc[(tensors["tensor_id"] == 101), "name"] = "fc.weight"
    return make_trace(ops, tensors, make_modules("", "fc"), **meta)


def timed_trace(**meta: Any) -> Trace:
    """An optime trace of one step: a module's forward with a kernel, backward on another thread, and the optimizer."""
    root = {"level": "range", "phase": "other"}
    fc = {"model": "Net", "module": "fc", "module_call": 0}
    matmul = {**fc, "op": "aten.mm.default"}
    known = {"flops": 4096, "input_shapes": "[[2, 8], [8, 8]]", "source": "train.py:7"}
    kernel = {"level": "kernel", "op": "gemm", "device": "cuda:0", "stream": 7, "self_device_time_us": 40.0}
    add = {"parent_id": 0, "op": "aten.add_.Tensor", "phase": "optimizer"}
    backward = {"parent_id": 0, "level": "api", "op": "torch.autograd.backward", "phase": "backward"}
    ops = make_ops(
        {**root, "op": "step", "start_us": 0.0, **_times(100.0, 10.0)},
        {**fc, "parent_id": 0, "level": "module", "op": "Linear", "start_us": 5.0, **_times(30.0, 4.0)},
        {**matmul, "parent_id": 1, "start_us": 7.0, **_times(26.0, 20.0), **known, "self_device_time_us": 40.0},
        {**fc, "parent_id": 2, "level": "runtime", "op": "cudaLaunchKernel", "start_us": 25.0, "self_time_us": 6.0},
        {**fc, "parent_id": 3, **kernel, "start_us": 30.0, "self_time_us": 40.0},
        {**backward, "start_us": 40.0, "self_time_us": 40.0},
        {**matmul, "phase": "backward", "thread": 1, "start_us": 45.0, "self_time_us": 30.0},
        {**add, "start_us": 85.0, "self_time_us": 10.0},
        {**add, "start_us": 95.0, "self_time_us": 5.0},
    )
    memory = make_memory((None, 1.0, 512), (2, 8.0, 2048), (6, 50.0, -2048))
    timings = TIMINGS.frame({"op_id": [0], "repeats": [5], "median_us": [100.0], "iqr_us": [4.0], "min_us": [97.0]})
    frames = {"ops": ops, "modules": make_modules("", "fc"), "memory": memory, "timings": timings}
    about = {"verb": "optime", "wall_us": 101.0, "recorder_us": 9.0, "repeats": 5, "warmup": 2}
    return Trace(frames, {**_meta(len(ops)), **about, **meta})


def repeated_trace(**meta: Any) -> Trace:
    """The same step in four runs; in the second something hit the forward op, and the third has no optimizer."""
    trace = timed_trace(**meta)
    ops = trace.ops["self_time_us"].to_numpy()
    runs = [ops - 1.0, ops + np.eye(1, 9, 2)[0] * 9_960, ops + 1.0, ops.copy()]
    rows = [(op_id, run, time) for run, times in enumerate(runs) for op_id, time in enumerate(times)]
    samples = pd.DataFrame(rows, columns=["op_id", "repeat", "self_time_us"])
    samples = samples[(samples["repeat"] != 2) | (samples["op_id"] < 7)].reset_index(drop=True)
    samples = samples.assign(total_time_us=samples["self_time_us"], self_device_time_us=np.nan)
    return Trace({**trace.frames, "samples": SAMPLES.check(samples[[*SAMPLES.names]])}, trace.meta)


def _times(total_us: float, self_us: float) -> dict[str, float]:
    return {"total_time_us": total_us, "self_time_us": self_us}


def make_memory(*rows: tuple[int | None, float, int]) -> pd.DataFrame:
    """A memory frame of the CPU from (op_id, time_us, delta_bytes)."""
    op_ids, times, deltas = zip(*rows, strict=True)
    columns = {"op_id": op_ids, "time_us": times, "device": ["cpu"] * len(rows), "delta_bytes": deltas}
    return MEMORY.frame({**columns, "allocated_bytes": np.cumsum(deltas)})


def fake_trace(n_ops: int, layers: int = 32, seed: int = 0, **meta: Any) -> Trace:
    """A trace of about `n_ops` ops of a model with `layers` blocks; fast for 1,000,000."""
    draw = np.random.default_rng(seed)
    ids = np.arange(n_ops)
    is_api = ids % 3 == 0
    paths = [f"blocks.{layer}.{part}" for layer in range(layers) for part in PARTS]
    place = (ids // 9) % len(paths)
    phase = np.minimum(ids * 3 // max(n_ops, 1), 2)
    self_us = np.round(draw.lognormal(1.5, 1.2, n_ops), 3)
    total_us = self_us + np.where(is_api, np.roll(self_us, -1) + np.roll(self_us, -2), 0.0)
    is_backward = phase == 1
    ops = OPS.frame(
        {
            "op_id": ids,
            "parent_id": _numbers(ids - ids % 3, is_api),
            "level": _texts(["api", "aten"], np.where(is_api, 0, 1)),
            "op": _texts([LINEAR, *KINDS], np.where(is_api, 0, 1 + draw.integers(0, len(KINDS), n_ops))),
            "model": _texts(["Rwkv"], np.zeros(n_ops, int)),
            "module": _texts(paths, place),
            "module_call": _numbers(ids // (9 * len(paths))),
            "phase": _texts(PHASES, phase),
            "step": ids * 4 // max(n_ops, 1),
            "forward_op_id": _numbers(n_ops * 2 // 3 - ids, ~is_backward),
            "device": _texts(["cpu"], np.zeros(n_ops, int)),
            "stream": _numbers(ids, np.ones(n_ops, bool)),
            "thread": np.where(is_backward, 1, 0),
            "start_us": np.cumsum(self_us) - self_us,
            "total_time_us": total_us,
            "self_time_us": self_us,
            "flops": _numbers((ids % 7 + 1) * 65536, is_api),
            "source": _texts([f"models/rwkv4.py:{line}" for line in range(20, 120)], ids % 100),
        }
    )
    return make_trace(ops, _fake_tensors(ids[~is_api]), make_modules("", *_with_parents(paths), model="Rwkv"), **meta)


def _fake_tensors(op_ids: np.ndarray) -> pd.DataFrame:
    """Two inputs and one output per op: what the op before made, and a parameter."""
    size = 3 * len(op_ids)
    which = np.tile([0, 1, 2], len(op_ids))
    owner = np.repeat(op_ids, 3)
    order = np.repeat(np.arange(len(op_ids)), 3)
    tensor_id = np.choose(which, [order + 99, order % 64, order + 100])
    shapes = ["[2, 32, 64]", "[64, 64]", "[2, 32, 256]"]
    return TENSORS.frame(
        {
            "op_id": owner,
            "role": _texts(["input", "output"], (which == 2).astype(int)),
            "position": np.where(which == 1, 1, 0),
            "tensor_id": tensor_id,
            "storage_id": _numbers(tensor_id),
            "name": _texts([f"blocks.{n}.att.key.weight" for n in range(64)], np.where(which == 1, tensor_id % 64, -1)),
            "dtype": _texts(["float32", "bfloat16"], (order % 2).astype(int)),
            "shape": _texts(shapes, np.where(which == 1, 1, 2 * (order % 2))),
            "stride": _texts(["[2048, 64, 1]", "[64, 1]"], (which == 1).astype(int)),
            "device": _texts(["cpu"], np.zeros(size, int)),
            "numel": np.full(size, 4096),
            "size_bytes": _numbers(np.full(size, 16384)),
            "requires_grad": which == 1,
            **{name: np.full(size, value) for name, value in STATISTICS.items()},
            "nan_count": _numbers(np.zeros(size, int)),
            "inf_count": _numbers(np.zeros(size, int)),
        }
    )


def _texts(values: Any, codes: np.ndarray) -> pd.Series:
    """A str column from few texts and a code per row; -1 is null."""
    indices = pa.array(codes, mask=codes < 0)
    taken = pa.array(list(values), type=pa.large_string()).take(indices)
    return pa.table({"texts": taken}).to_pandas()["texts"]


def _numbers(values: np.ndarray, is_missing: np.ndarray | None = None) -> pd.Series:
    """An Int64 column, null where `is_missing`."""
    mask = np.zeros(len(values), bool) if is_missing is None else is_missing
    return pd.Series(pd.arrays.IntegerArray(values.astype("int64"), mask))


def _module_row(path: str, model: str) -> dict[str, Any]:
    parent = None if path == "" else path.rpartition(".")[0]
    sizes = {"calls": 1, "params": 64, "trainable_params": 64, "param_bytes": 256, "buffer_bytes": 0}
    depth = 0 if path == "" else path.count(".") + 1
    return {
        "model": model,
        "module": path,
        "type": "Linear" if path else model,
        "parent": parent,
        "depth": depth,
        **sizes,
    }


def _with_parents(paths: list[str]) -> list[str]:
    names: dict[str, None] = {}
    for path in paths:
        parts = path.split(".")
        names.update(dict.fromkeys(".".join(parts[:end]) for end in range(1, len(parts) + 1)))
    return list(names)


def _meta(n_ops: int) -> dict[str, Any]:
    return {
        "verb": "optrace",
        "name": "",
        "created": "2026-01-02T03:04:05+00:00",
        "complete": True,
        "error": None,
        "versions": {"nbkit": "0.1.0", "torch": "2.13.0", "python": "3.11.9"},
        "devices": ["cpu"],
        "wall_us": 20.0 * n_ops,
        "recorder_us": 8.0 * n_ops,
        "skipped": {},
        "filters": {},
        "filtered_ops": 0,
    }
