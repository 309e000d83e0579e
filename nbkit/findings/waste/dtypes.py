"""Finds parameters that are cast anew in each forward call, and products in float64 in a model of narrower weights."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import Flags, Ints
from nbkit.findings.waste.step import RecordedStep
from nbkit.ops.families import CONVOLUTIONS, PRODUCTS

# A line that asks for a cast; those of torch.autocast happen inside of other calls.
CASTS = frozenset(f"torch.Tensor.{name}" for name in ("to", "type", "type_as", "half", "bfloat16", "float", "double"))
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
# Weights of norms and biases are small: to cast them costs little.
LEAST_ELEMENTS = 1024
FEWEST = 2
LEAST_NARROW = 0.5
CAST_ONCE = (
    "Let torch.autocast cast the weights, which does so once for all calls inside it, or keep them in that dtype: "
    "model.to(torch.bfloat16)."
)
AS_THE_MODEL = "Cast the input to the dtype of the model instead, x.to(weight.dtype); load data as float32."
NARROW = (
    "Load the data in the dtype of the model, torch.from_numpy(x).float(), and leave the module in it, without "
    ".double(): float64 takes twice the memory of float32, and half its speed at best."
)


@rule("hint", rank=10)
def parameter_casts(step: RecordedStep) -> Iterator[Finding]:
    """A line casts weights to a narrower dtype, or to float64, anew in each forward call; not what autocast casts.

    Casts to float32 are how routers and norms keep their precision.
    """
    casts = np.flatnonzero(step.named("_to_copy") & step.in_module)
    casts = casts[[parent >= 0 and step.names[parent] in CASTS for parent in step.parent[casts].tolist()]]
    if not len(casts):
        return
    before, after = step.tensor_rows(casts, "input"), step.tensor_rows(casts, "output")
    rows = casts[(before[casts] >= 0) & (after[casts] >= 0)]
    # A line may turn a weight before it casts it: that is the same memory.
    rows = rows[[storage in step.held_names for storage in step.memory[before[rows]].tolist()]]
    rows = rows[
        [_is_waste(*dtypes) for dtypes in zip(step.dtypes[before[rows]], step.dtypes[after[rows]], strict=True)]
    ]
    for _, index in step.ops["source"].iloc[rows].groupby(step.ops["source"].iloc[rows], dropna=False, sort=False):
        mine = index.index.to_numpy(np.int64)
        if len(mine) >= FEWEST and _is_anew(step, before[mine], after[mine]) and _has_weight(step, before[mine]):
            yield _cast(step, mine, before[mine], after[mine])


def _is_waste(before: str, after: str) -> bool:
    return before in BYTES and (0 < BYTES.get(after, 0) < BYTES[before] or (after == "float64" != before))


def _is_anew(step: RecordedStep, before: Ints, after: Ints) -> bool:
    """Returns whether these are no copies made once: those without a graph may be kept for later calls."""
    copied = step.tensors["tensor_id"].to_numpy()[before]
    return bool(step.requires_grad[after].any() or len(np.unique(copied)) < len(copied))


def _has_weight(step: RecordedStep, before: Ints) -> bool:
    tensors = step.tensors.iloc[before]
    return bool(((tensors["numel"] >= LEAST_ELEMENTS) & tensors["shape"].str.contains(",", regex=False)).any())


def _cast(step: RecordedStep, rows: Ints, before: Ints, after: Ints) -> Finding:
    names = list(dict.fromkeys(step.held_names[storage] for storage in step.memory[before].tolist()))
    modules = step.ops["module"].iloc[rows].nunique()
    of = f"parameters of {modules:,} modules" if modules > 1 else " and ".join(names[:2])
    of = f"{names[0]} and {len(names) - 1:,} more parameters" if modules == 1 and len(names) > 2 else of
    message = (
        f"The forward pass casts {of} from {step.dtypes[before[0]]} to {step.dtypes[after[0]]} anew in each call, "
        f"{len(rows):,} casts in all"
    )
    finding = parameter_casts.finding(
        message,
        AS_THE_MODEL if step.dtypes[after[0]] == "float64" else CAST_ONCE,
        parameter=names[0] if len(names) == 1 else None,
        effect_bytes=int(step.sizes[after].sum()),
        evidence={"parameters": names},
    )
    return step.finding(finding, rows)


@rule("hint", rank=20)
def wide_products(step: RecordedStep) -> Iterator[Finding]:
    """Products or convolutions compute in float64, because of a few weights of a model that is narrower."""
    held = step.parameters[step.parameters["kind"] == "parameter"]
    is_wide = step.is_parameter & (step.dtypes == "float64")
    if not is_wide.any():
        return
    products = step.named(*PRODUCTS, *CONVOLUTIONS) & step.in_module
    reads = np.zeros(len(step.ops), dtype=bool)
    # A linear layer reads its weight through t(), which is the same memory.
    reads[step.op_ids[~step.is_output & np.isin(step.memory, step.memory[is_wide])]] = True
    for model, of in held.groupby("model", sort=False):
        mine = (step.ops["model"] == model).to_numpy(bool) & products
        share = float(of["numel"][of["dtype"] != "float64"].sum()) / max(float(of["numel"].sum()), 1.0)
        if (mine & reads).any() and share >= LEAST_NARROW:
            yield _wide(step, mine, mine & reads, of)


def _wide(step: RecordedStep, products: Flags, wide: Flags, parameters: pd.DataFrame) -> Finding:
    rows = np.flatnonzero(wide)
    narrow = parameters[parameters["dtype"] != "float64"]
    common = narrow.groupby("dtype")["numel"].sum().idxmax()
    names = parameters["name"][parameters["dtype"] == "float64"].tolist()
    count = int(products.sum())
    are = f"{names[0]}{units.and_more(len(names) - 1)} {'is' if len(names) == 1 else 'are'}"
    message = (
        f"{len(rows):,} of {count:,} matrix products and convolutions of the model "
        f"{'computes' if len(rows) == 1 else 'compute'} in float64, in which {are}; most parameters of "
        f"{parameters['model'].iloc[0]} are {common}"
    )
    used = np.flatnonzero(wide[step.op_ids] & (step.dtypes == "float64"))
    finding = wide_products.finding(
        message,
        NARROW,
        effect_bytes=step.bytes_of(used) // 2,
        evidence={"parameters": names},
    )
    return step.finding(finding, rows)
