"""Defines the tables of a distributed job: its ranks, and what each asked of the others, one row a call."""

from nbkit.schema.table import table

COLLECTIVES = table(
    "collectives",
    "collective, or send or receive, that a process called, in call order",
    ("rank", "Int64", "the process that called it: its global rank; null if unknown"),
    (
        "op_id",
        "Int64",
        "the outermost op of that call in ops, or the op that made it inside; null where ops has neither (a flight "
        "recorder's dump)",
    ),
    ("op", "str", "as torch.distributed names it: all_reduce, reduce_scatter, send; null if unknown"),
    ("group", "str", "process group, as ops has it, or the name that torch's flight recorder has"),
    ("group_ranks", "str", "JSON list of the global ranks of its members; null if unknown"),
    (
        "seq",
        "Int64",
        "number of the call in its group as torch's flight recorder counts: collectives by collective_seq_id, sends "
        "and receives by p2p_seq_id; null if unknown",
    ),
    ("is_p2p", "bool", "whether it is a send or a receive, which has a count of its own"),
    (
        "peer",
        "Int64",
        "global rank of the other process of a send or receive, or of the source or target; null for others",
    ),
    ("input_shapes", "str", "JSON list of the shapes that go in; null if unknown"),
    ("output_shapes", "str", "JSON list of the shapes that come out; null if unknown"),
    ("input_dtypes", "str", "JSON list of their dtypes, without prefix; null if unknown"),
    ("output_dtypes", "str", "JSON list of the dtypes that come out; null if unknown"),
    ("size_bytes", "Int64", "bytes of the tensors that go in, the process's own share; null if unknown"),
    ("start_us", "float64", "start of the call, as in ops; of a dump microseconds since its first entry"),
    ("duration_us", "float64", "microseconds from start_us to the end of the transfer; null if unknown"),
    ("wait_us", "float64", "microseconds in which the calling thread waited for it; null if unknown"),
    ("state", "str", "as torch's flight recorder has it: scheduled, started or completed; null if unknown"),
    (
        "module",
        "str",
        "as in ops: the module whose forward or backward pass made the call; of DistributedDataParallel's buckets that",
    ),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops: the line that made the call"),
)
RANKS = table(
    "ranks",
    "rank of a job: a process that recorded it, or should have",
    ("rank", "int64", "its global rank"),
    ("state", "str", "read; missing; damaged: a part of it cannot be read; version: saved by another nbkit"),
    ("verb", "str", "the verb that recorded it; null if unknown, as all that follows"),
    ("host", "str", "name of its machine"),
    ("world_size", "Int64", "how many ranks it says that the job has"),
    ("complete", "bool", "whether the recorded code ran to its end; False where that cannot be read"),
    ("error", "str", "what ended the recorded code, or why the rank cannot be read"),
    ("rows", "Int64", "rows of its frame ops"),
    ("wall_us", "float64", "microseconds from the begin of the recording to its end"),
    ("started_ns", "Int64", "unix time in nanoseconds at which start_us is 0"),
    ("clock_offset_us", "float64", "by how much its clock was ahead of rank 0's, by align_clocks(); null if not asked"),
    ("clock_error_us", "float64", "by how much that may be off at most"),
)
