"""Makes the op graph of a recorded trace: its aten ops, what they read from outside, and the tensors between them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.graph.names import call_attributes, op_names, tensor_texts
from nbkit.schema import EDGES, GRAPH_TENSORS, MODULES, NODES, OPS, TENSORS, TEXT, nullable
from nbkit.step.step import Step

GRAPH = "trace"
BACKWARD_CALLS = ("torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")
Ids = npt.NDArray[np.int64]


def trace_graph(ops: pd.DataFrame, tensors: pd.DataFrame, modules: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the frames nodes, edges, graph_tensors and modules of a recorded step.

    First the tensors that no recorded op made (parameters, buffers and state, inputs), then the aten ops in call order.
    An op reads from the last op before it that made the tensor or wrote to its memory, through whatever view; an op
    that made a view is the source of what reads that view. Needs the frame tensors: without it there are no edges.
    """
    kept = np.flatnonzero((OPS.check(ops)["level"] == "aten").to_numpy(bool))
    flow = _Flow.of(Step(ops, TENSORS.check(tensors)), MODULES.check(modules))
    node_of_op = np.full(len(ops) + 1, -1, np.int64)  # the last entry answers for -1
    node_of_op[kept] = np.arange(len(kept)) + len(flow.outside)
    return {
        "nodes": pd.concat([_outside_nodes(flow), _op_nodes(ops, flow, kept)], ignore_index=True),
        "edges": _edges(flow, node_of_op),
        "graph_tensors": _graph_tensors(flow, node_of_op),
        "modules": modules,
    }


@dataclass(frozen=True)
class _Flow:
    """Reads the tensors frame as dataflow: rows of inputs with the row that made each, and what came from outside."""

    step: Step
    inputs: Ids  # rows of tensors
    made_by: Ids  # row of tensors that made each input; -1: it came from outside
    outside: Ids  # row in which each tensor from outside is first read
    outside_of: Ids  # per input, the number of its tensor from outside; -1 if an op made it
    kinds: npt.NDArray[np.str_]  # of each tensor from outside
    texts: pd.Series  # what each tensor_id is called

    @classmethod
    def of(cls, step: Step, modules: pd.DataFrame) -> "_Flow":
        inputs = np.flatnonzero(~step.is_output)
        made_by = step.sources[inputs]
        made_by[_reads_own_parameter(step, modules, inputs, made_by)] = -1
        loose = inputs[made_by < 0]
        numbers, different = pd.factorize(step.tensor_ids[loose])
        outside = loose[np.unique(numbers, return_index=True)[1]] if len(different) else loose
        outside_of = np.full(len(inputs), -1, np.int64)
        outside_of[made_by < 0] = numbers
        kinds = _kinds(step, outside, modules)
        kinds[_is_literal(step, outside)] = "constant"
        return cls(step, inputs, made_by, outside, outside_of, kinds, tensor_texts(step.tensors))

    def take(self, column: str, rows: Ids) -> pd.Series:
        return self.step.tensors[column].iloc[rows].reset_index(drop=True)

    def names(self, rows: Ids) -> pd.Series:
        """Returns what the tensors of these rows are called."""
        return self.texts.reindex(self.step.tensor_ids[rows]).reset_index(drop=True)


def _reads_own_parameter(step: Step, modules: pd.DataFrame, inputs: Ids, made_by: Ids) -> npt.NDArray[np.bool_]:
    """Returns which inputs are parameters of a model that the step itself made, such as inside of opcost.

    They stand for what the model holds, as those of a model from before do: what filled them is none of its ops. What
    the optimizer wrote to them is.
    """
    tensors = step.tensors
    first = tensors.drop_duplicates("tensor_id")
    is_made = first["role"].eq("output") & first["name"].notna() & first["state_name"].isna()
    made = np.isin(step.tensor_ids[inputs], first["tensor_id"][is_made])
    # A path is also that of the plain tensor behind a parameter: the model reads the parameter.
    used = inputs[made & step.ops["phase"].iloc[step.op_ids[inputs]].eq("forward").to_numpy(bool)]
    rows = tensors.loc[used].drop_duplicates("name").index.to_numpy()
    own = step.tensor_ids[rows[_kinds(step, rows, modules) == "parameter"]] if len(rows) else rows
    is_updated = step.ops["phase"].iloc[step.op_ids[made_by]].eq("optimizer").to_numpy(bool)
    return (made_by >= 0) & ~is_updated & np.isin(step.tensor_ids[inputs], own)


def _kinds(step: Step, outside: Ids, modules: pd.DataFrame) -> npt.NDArray[np.str_]:
    """Returns parameter, buffer or input: a tensor with a path that needs no gradient is told by what its module holds.

    One without a path that the step writes to outlives it (the state of an optimizer, a gradient): a buffer, too.
    """
    tensors = step.tensors
    rows = tensors.loc[outside]
    trained = set(tensors.loc[tensors["requires_grad"] & tensors["name"].notna(), "tensor_id"])
    holder = rows["name"].str.rpartition(".")[0] if len(rows) else rows["name"]
    held = modules.drop_duplicates("module").set_index("module")[["params", "buffer_bytes"]].reindex(holder)
    has_params, has_buffers = (held[name].fillna(0).to_numpy() > 0 for name in held)
    is_named = rows["name"].notna().to_numpy()
    is_parameter = rows["tensor_id"].isin(trained).to_numpy() | (has_params & ~has_buffers)
    is_state = np.isin(step.memory[outside], step.memory[step.is_written])
    return np.where(is_named, np.where(is_parameter, "parameter", "buffer"), np.where(is_state, "buffer", "input"))


def _is_literal(step: Step, outside: Ids) -> npt.NDArray[np.bool_]:
    """Returns whether a tensor is what torch.tensor([1, 2]) took its values from: lift_fresh reads it first."""
    reader = step.ops["op"].array.take(step.op_ids[outside])
    return np.asarray(pd.Series(reader, dtype=TEXT).str.startswith("aten.lift_fresh"), dtype=bool)


def _outside_nodes(flow: _Flow) -> pd.DataFrame:
    rows = flow.outside
    path = flow.take("name", rows)
    holder = path.str.rpartition(".")[0] if len(path) else path
    return NODES.frame(
        {
            "node_id": np.arange(len(rows)),
            "graph": [GRAPH] * len(rows),
            "kind": flow.kinds,
            "name": flow.names(rows),
            "module": holder.array,
            **{name: flow.take(name, rows) for name in ("dtype", "shape", "device")},
        }
    )


def _op_nodes(ops: pd.DataFrame, flow: _Flow, kept: Ids) -> pd.DataFrame:
    calls = ops.iloc[kept].reset_index(drop=True)
    tensors = flow.step.tensors
    first = np.flatnonzero(flow.step.is_output & (tensors["position"] == 0).to_numpy(bool))
    result = np.full(len(ops), -1, np.int64)
    result[flow.step.op_ids[first]] = first
    result = result[kept]
    columns = {name: tensors[name].array.take(result, allow_fill=True) for name in ("dtype", "shape")}
    return NODES.frame(
        {
            "node_id": np.arange(len(kept)) + len(flow.outside),
            "graph": [GRAPH] * len(kept),
            "kind": ["op"] * len(kept),
            "op": calls["op"].array,
            "name": op_names(calls["op"]),
            "phase": _phases(ops, kept),
            "attributes": call_attributes(ops, kept),
            "op_id": nullable(kept),
            **{name: calls[name].array for name in ("module", "device", "source")},
            **columns,
        }
    )


def _phases(ops: pd.DataFrame, kept: Ids) -> pd.Series:
    """Returns the phases of the ops, recompute for what a checkpointed part runs again in the backward pass."""
    is_again = (ops["phase"] == "backward") & (ops["level"] == "api") & ops["module_call"].notna()
    is_again &= ~ops["op"].isin(BACKWARD_CALLS)
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)[kept]
    phase = ops["phase"].iloc[kept].reset_index(drop=True)
    return phase.mask(np.append(is_again.to_numpy(bool), False)[parent], "recompute")


def _edges(flow: _Flow, node_of_op: Ids) -> pd.DataFrame:
    inputs, positions = flow.inputs, flow.step.tensors["position"].to_numpy()
    op_ids, ports = np.append(flow.step.op_ids, -1), np.append(positions, 0)
    src = np.where(flow.made_by >= 0, node_of_op[op_ids[flow.made_by]], flow.outside_of)
    return EDGES.frame(
        {
            "src": nullable(src),
            "src_port": nullable(ports[flow.made_by]),
            "dst": node_of_op[op_ids[inputs]],
            "dst_port": positions[inputs],
            "tensor": flow.names(inputs),
            "dtype": flow.take("dtype", inputs),
            "shape": flow.take("shape", inputs),
        }
    )


def _graph_tensors(flow: _Flow, node_of_op: Ids) -> pd.DataFrame:
    tensors, is_output = flow.step.tensors, flow.step.is_output
    first = tensors.drop_duplicates("tensor_id")
    ids = first["tensor_id"].to_numpy()
    counts = {
        "reads": tensors.loc[~is_output, "tensor_id"].value_counts(),
        "writes": tensors.loc[is_output].drop_duplicates(["op_id", "tensor_id"])["tensor_id"].value_counts(),
    }
    outside = pd.Series(np.arange(len(flow.outside)), index=flow.step.tensor_ids[flow.outside]).reindex(ids)
    writer = pd.Series(node_of_op[first["op_id"].to_numpy()], index=ids)
    kinds = pd.Series(flow.kinds, index=flow.step.tensor_ids[flow.outside], dtype=TEXT).reindex(ids)
    return GRAPH_TENSORS.frame(
        {
            "graph": [GRAPH] * len(first),
            "tensor": flow.names(first.index.to_numpy()),
            "kind": kinds.fillna("temporary").array,
            "node_id": nullable(outside.fillna(writer).to_numpy(np.int64)),
            **{name: first[name].array for name in ("dtype", "shape", "size_bytes")},
            "numel": nullable(first["numel"].to_numpy()),
            **{name: count.reindex(ids, fill_value=0).to_numpy(np.int64) for name, count in counts.items()},
        }
    )
