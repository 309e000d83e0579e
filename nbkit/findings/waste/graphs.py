"""Finds models that are evaluated with autograd on: each call builds a graph that no backward pass uses."""

from collections.abc import Iterator

import numpy as np

from nbkit import units
from nbkit.findings.finding import Finding, counting, rule
from nbkit.findings.time.step import Flags, Ints
from nbkit.findings.waste.step import RecordedStep

FEWEST_CALLS = 2
ADVICE = (
    "If nothing is to learn from it, evaluate under torch.no_grad() or torch.inference_mode(): neither keeps what a "
    "backward pass would need; model.eval() does not turn autograd off. Else look for a detach() behind it."
)


@rule("hint", rank=40)
def unused_graph(step: RecordedStep) -> Iterator[Finding]:
    """A model runs several times in eval mode with autograd on, and no backward pass goes through it.

    Where something else than parameters needs a gradient, such as an input, the graph is likely meant. Autocast gives
    its casts of parameters a graph under no_grad, too.
    """
    is_cast = (step.ops["op"] == "aten._to_copy.default").to_numpy(bool)
    used = step.ops["forward_op_id"].dropna().to_numpy(np.int64)
    for model in dict.fromkeys(model for model, module, _ in step.modes if module == ""):
        calls = [training for (name, module, _), training in step.modes.items() if (name, module) == (model, "")]
        count = len(calls) - sum(calls)
        ops = _evaluated(step, model) if count >= FEWEST_CALLS else np.zeros(0, dtype=bool)
        if not ops.any() or ops[used].any() or _has_other_leaf(step, ops):
            continue
        graph = _with_graph(step, ops)
        rows = np.flatnonzero(graph[step.op_ids])
        if (graph & ~is_cast).any():
            yield _finding(step, model, count, ops, rows)


def _evaluated(step: RecordedStep, model: str) -> Flags:
    """Returns which forward ops of a model ran in calls of modules in eval mode."""
    result = np.zeros(len(step.ops), dtype=bool)
    rows = np.flatnonzero(step.in_module & (step.ops["model"] == model).to_numpy(bool))
    of = step.ops.iloc[rows]
    calls = zip(of["module"].tolist(), of["module_call"].to_numpy(np.int64, na_value=-1).tolist(), strict=True)
    result[rows] = [step.modes.get((model, module, call)) is False for module, call in calls]
    return result


def _with_graph(step: RecordedStep, ops: Flags) -> Flags:
    """Returns which of these ops give something with a graph."""
    result = np.zeros(len(step.ops), dtype=bool)
    result[step.op_ids[step.is_output & step.requires_grad]] = True
    return np.asarray(result & ops)


def _has_other_leaf(step: RecordedStep, ops: Flags) -> bool:
    """Returns whether an op reads a leaf that needs a gradient, and is no parameter."""
    made = step.tensor_ids[step.is_output & step.requires_grad]
    leaf = ~step.is_output & step.requires_grad & step.tensors["name"].isna().to_numpy(bool) & ops[step.op_ids]
    return bool((~np.isin(step.tensor_ids[leaf], made)).any())


def _finding(step: RecordedStep, model: str, calls: int, ops: Flags, rows: Ints) -> Finding:
    held = rows[~np.isin(step.memory[rows], step.memory[step.tensors["name"].notna().to_numpy(bool)])]
    total = step.bytes_of(held)
    reader, together = _reader(step, ops)
    has_backward = step.in_phase("backward").any()
    no = "no backward pass uses it" if has_backward else "the recording has no backward pass"
    what = f"{model} runs {calls:,} times in eval mode with autograd on, and {no}"
    if reader is None:
        size, kept = total // calls, "each call builds a graph, which stays alive as long as its result"
    else:
        source = step.ops["source"].iloc[reader]
        line = f" at {source}" if isinstance(source, str) else ""
        name = str(step.names[reader]).rpartition(".")[0]
        together = min(together, calls)
        graphs = "their graphs stay" if together == calls else f"the graphs of {together:,} calls stay"
        size, kept = total * together // calls, f"{graphs} alive together until {name}{line} reads the results"
    finding = unused_graph.finding(
        f"{what}: {kept}, and {'holds' if reader is None else 'hold'} up to {units.data_size(size)}",
        ADVICE,
        effect_bytes=size,
        evidence={"model_calls": calls, "most_bytes_per_call": total // calls, "read_by": reader},
    )
    first = int(np.flatnonzero(ops & _with_graph(step, ops))[0])
    return counting(step.finding(finding, [first]), calls)


def _reader(step: RecordedStep, ops: Flags) -> tuple[int | None, int]:
    """Returns the op outside of the model that reads most results with their graphs, and how many; null for one."""
    made = np.unique(step.tensor_ids[step.is_output & step.requires_grad & ops[step.op_ids]])
    outside = _with_graph(step, ~ops)
    reads = np.flatnonzero(~step.is_output & step.requires_grad & outside[step.op_ids] & np.isin(step.tensor_ids, made))
    counts = np.bincount(step.op_ids[reads], minlength=len(step.ops))
    most = int(counts.max(initial=0))
    return (int(counts.argmax()) if most >= FEWEST_CALLS else None), most
