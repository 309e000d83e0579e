"""Defines the tables of graphs: nodes, edges, tensors and parts; and what else a log says of its run."""

from nbkit.schema.table import table

NODES = table(
    "nodes",
    "node of a graph, in the order of its source",
    ("node_id", "int64", "this node, dense from 0 over all graphs of the trace"),
    (
        "graph",
        "str",
        "which graph: 'module tree', 'trace', 'export', 'NAME traced' and 'NAME compiled' of a OneFlow nn.Graph, "
        "'block 0' of a Paddle program, the name of an ONNX graph",
    ),
    ("kind", "str", "op, module, input, output, parameter, buffer or constant"),
    (
        "op",
        "str",
        "of an op its type as its framework calls it (aten.mm.default, matmul_v2, broadcast_matmul, MatMul), of a "
        "module its class; null for others",
    ),
    ("name", "str", "name in its graph; of a module, a parameter or a buffer its path"),
    ("module", "str", "path of the module that holds it or that it is; '' is the root; null where none is known"),
    ("part_id", "Int64", "innermost row of parts that it belongs to; null if none"),
    (
        "role",
        "str",
        "role in the model: embedding, rotary (positions), norm, block, attention, time_mix, channel_mix (RWKV), mlp, "
        "head, loss (and the first value of its gradient), residual (an addition to the stream), optimizer, "
        "communication or cast; null where not recognized",
    ),
    ("phase", "str", "forward, backward, recompute (the forward once more, for backward), optimizer or other; or null"),
    (
        "inserted",
        "str",
        "what put it there: amp, autograd, optimizer, boxing, communication ...; null: the user's code",
    ),
    ("dtype", "str", "dtype of its first result, without prefix; null if unknown"),
    ("shape", "str", "JSON list of the sizes of its first result, null in it for a dynamic one; null if unknown"),
    ("device", "str", "device or placement, as its source says it"),
    (
        "sbp",
        "str",
        "how its first result is spread over the ranks, as OneFlow writes it: B (broadcast), P (partial sum), S(0) "
        "(split along axis 0), one after the other for each dimension of the hierarchy; null if unknown",
    ),
    ("mesh", "str", "ranks that it is for and the mesh that they form: 'dp 2, mp 1: ranks 1, 3'; null if unknown"),
    ("ring", "Int64", "group of ranks that it communicates in, by the number its source gives it; else null"),
    (
        "peer",
        "Int64",
        "of what communicates the rank it sends to or receives from, or the root of a broadcast or reduction, counted "
        "within its ring; else null",
    ),
    ("attributes", "str", "JSON object of all else its source says, by the names it uses there"),
    ("source", "str", "line of the user's code that made it: 'path/file.py:12'"),
    ("line", "Int64", "line of the file that was read, from 1; null for live graphs"),
    ("op_id", "Int64", "of an op in a graph of a recorded step: its row of ops, where its times stand; else null"),
)
EDGES = table(
    "edges",
    "tensor that a node reads, in the order of the readers",
    ("src", "Int64", "node_id that made it; null if it comes from outside of the graph"),
    ("src_port", "Int64", "which of its results, from 0"),
    ("dst", "int64", "node_id that reads it"),
    ("dst_port", "int64", "which of its inputs, from 0, in call order with lists flattened"),
    ("slot", "str", "what the reader calls that input; null where inputs have no names"),
    ("tensor", "str", "name of the tensor"),
    ("dtype", "str", "as in nodes"),
    ("shape", "str", "as in nodes"),
    ("sbp", "str", "as in nodes, as the reader sees it: it is another one where boxing stands between"),
)
GRAPH_TENSORS = table(
    "graph_tensors",
    "named tensor (variable, value) of a graph",
    ("graph", "str", "as in nodes"),
    ("tensor", "str", "its name, unique in its graph"),
    (
        "kind",
        "str",
        "parameter, buffer (other state that lives longer than a step), input, output, constant, temporary",
    ),
    ("node_id", "Int64", "node that stands for it, else the first that writes it; null if none does"),
    ("dtype", "str", "as in nodes"),
    ("shape", "str", "as in nodes"),
    ("numel", "Int64", "number of elements; null where a size is unknown"),
    ("size_bytes", "Int64", "bytes of storage; 0 for what is metadata only, null where unknown"),
    ("sbp", "str", "as in nodes"),
    ("reads", "int64", "edges that read it"),
    ("writes", "int64", "nodes that write it"),
    ("attributes", "str", "as in nodes"),
)
PARTS = table(
    "parts",
    "part of a graph: a module, or what was recognized as one",
    ("part_id", "int64", "this part, dense from 0"),
    ("parent_id", "Int64", "part that holds it; null at the top of its graph"),
    ("graph", "str", "as in nodes"),
    ("name", "str", "last piece of the module path, or what it is called: 'layer 3'; unique below its parent"),
    ("module", "str", "module path; null where the part was recognized by dataflow"),
    ("type", "str", "class of the module; null if unknown"),
    (
        "phase",
        "str",
        "as in nodes; a graph with a backward or an optimizer has its parts once for each phase; null where phases are "
        "not told apart",
    ),
    ("role", "str", "as in nodes"),
    ("number", "Int64", "which of its repeats it is, from 0; null if it is the only one of its form"),
    ("repeat_of", "Int64", "first part of the same form beside it, itself included; null if it is the only one"),
    ("nodes", "int64", "nodes in it and below"),
    ("params", "Int64", "parameter elements in it and below, shared ones once; null if unknown"),
    ("evidence", "str", "what its role was recognized by; null without a role"),
)
OVERLAY = table(
    "overlay",
    "node or part that a column of another frame colors, as `color_by` made it",
    ("node_id", "Int64", "the node; null if it is a part"),
    ("part_id", "Int64", "the part; null if it is a node"),
    ("value", "float64", "number of the rows that join, in the unit of their column; null for categories"),
    ("category", "str", "text of the rows that join, 'several' where they differ; null for numbers"),
    ("rows", "int64", "how many rows join"),
)
# What a watched run has of each layer, in names such as gradient_norm/layers.0; 2-norms, and bounds of its output.
LAYER_VALUES = ("gradient_norm", "weight_norm", "update_norm", "activation_min", "activation_max")
METRICS = table(
    "metrics",
    "value of a training metric",
    ("step", "int64", "training step or iteration it was printed or measured at"),
    (
        "name",
        "str",
        "what it is: loss, lr, throughput ..., with how it was averaged where that is known; of a layer of a watched "
        "run gradient_norm/LAYER, weight_norm, update_norm (2-norms), activation_min, activation_max",
    ),
    ("value", "float64", "its value, in the unit of its name"),
    ("time_us", "float64", "microseconds since the first line of the log with a time; null if unknown"),
)
MODULE_TENSORS = table(
    "module_tensors",
    "tensor that a module is given, gives or holds, as a log prints it",
    ("model", "str", "as in modules"),
    ("module", "str", "path of the module; '' is the graph itself"),
    ("kind", "str", "input, output, parameter or buffer"),
    ("name", "str", "its name: of an input or output as it was printed, with its position; of others their path"),
    ("dtype", "str", "as in nodes"),
    ("shape", "str", "as in nodes"),
    ("sbp", "str", "as in nodes"),
    ("device", "str", "as in nodes"),
    ("is_lazy", "bool", "whether it stands for a tensor of a graph, which has no values yet"),
    ("requires_grad", "bool", "whether it is printed to need a gradient: by its flag, or as it has a grad_fn"),
    ("grad_fn", "str", "what made it, for autograd; null if not printed"),
)
PASSES = table(
    "passes",
    "pass of a compiler over a graph, in the order in which it ran",
    ("graph", "str", "name of the graph"),
    ("number", "Int64", "number that the log gives the pass; null if none"),
    ("name", "str", "name of the pass"),
    ("duration_us", "float64", "microseconds from its start to its end; null if the log does not say it"),
)
MEMORY_PLAN = table(
    "memory_plan",
    "amount of memory that a compiled plan is to allocate on a device",
    ("graph", "str", "name of the graph; null where the log does not say it"),
    ("rank", "Int64", "rank; null if unknown"),
    ("device", "Int64", "number of the device on its rank; null if unknown"),
    (
        "kind",
        "str",
        "total: all of it, which is the sum of the chunks (memory that tensors share in turn), unreused (of one tensor "
        "each) and eager_variables (parameters and optimizer state); block: a block of a chunk",
    ),
    ("chunk", "Int64", "of a block its chunk; else null"),
    ("block", "Int64", "of a block its number; else null"),
    ("count", "Int64", "blocks in it, of a block its tensors; null if unknown"),
    ("size_bytes", "Int64", "bytes; what OneFlow prints as MiB is 10^6 bytes"),
)
SETTINGS = table(
    "settings",
    "setting of the run that a log shows: how many iterations it was to have, then those of its lines in their order",
    ("name", "str", "what is set: world_size, train.amp.enabled ...; of a config file the target of the assignment"),
    ("text", "str", "its value as text; of a config file the Python expression, which nbkit does not run"),
    ("line", "Int64", "line of the file, from 1"),
)
CORRESPONDENCE = table(
    "correspondence",
    "part, parameter or op of two graphs, or of one of them only, in the order of the left graph",
    (
        "level",
        "str",
        "part; parameter: a parameter or a buffer; state: a buffer of no module, such as optimizer state, a gradient; "
        "op: an op, an input, an output or a constant",
    ),
    ("left_id", "Int64", "part_id or node_id on the left; null if only the right graph has it"),
    ("right_id", "Int64", "part_id or node_id on the right; null if only the left graph has it"),
    ("action", "str", "match, left_only or right_only"),
    (
        "relation",
        "str",
        "how the tensors are the same: same, cast (to another dtype), permute, reshape, other, also where no op was "
        "recorded and a parameter is paired by its shape alone; of an op that only one graph has what it does to its "
        "tensor, where that is one of these; null for parts",
    ),
    (
        "evidence",
        "str",
        "what the match was found by: name; role; shape: no other in that part has it; structure: dataflow and order",
    ),
    ("role", "str", "as in nodes, of the left side if it has it"),
    ("phase", "str", "as in nodes, of the left side if it has it"),
    ("left_name", "str", "name in its graph, of a part its module path or name"),
    ("right_name", "str", "likewise"),
    ("left_shape", "str", "as in nodes"),
    ("right_shape", "str", "as in nodes"),
    ("left_dtype", "str", "as in nodes"),
    ("right_dtype", "str", "as in nodes"),
    ("left_op", "str", "op as its framework calls it, of a part its class"),
    ("right_op", "str", "likewise"),
    ("message", "str", "what differs, in words; null if nothing that is known"),
)
