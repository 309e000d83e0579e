"""Defines the frames: every table's columns, their dtypes and their meaning, in one place."""

from nbkit.compat.text_dtype import TEXT
from nbkit.schema.collectives import COLLECTIVES, RANKS
from nbkit.schema.comparisons import ALIGNMENT, DIFFS, EXPORTS, RESULTS
from nbkit.schema.cost import COSTS, MODULE_COSTS, NODE_COSTS, SAVED, STORAGES
from nbkit.schema.findings import FINDINGS
from nbkit.schema.graphs import (
    CORRESPONDENCE,
    EDGES,
    GRAPH_TENSORS,
    MEMORY_PLAN,
    METRICS,
    MODULE_TENSORS,
    NODES,
    OVERLAY,
    PARTS,
    PASSES,
    SETTINGS,
)
from nbkit.schema.memory import BLOCKS, MEMORY, STACKS
from nbkit.schema.operators import CAPTURES, CASTS, REPLACED, REPLAYED, RUNS, STABILITY, TRIALS
from nbkit.schema.recording import FAULTS, LINES, MODULES, OPS, SAMPLES, TENSORS, TIMINGS
from nbkit.schema.table import DTYPES, TABLES, Column, Table, nullable, table
from nbkit.schema.training import PARAMETERS, STEPS

SCHEMA_VERSION = 9  # of the only layout that is read: another set of columns, or keys of meta, is another number
RECORDING = (
    OPS, TENSORS, MODULES, LINES, MEMORY, STACKS, BLOCKS, TIMINGS, SAMPLES, DIFFS, FINDINGS, PARAMETERS, STEPS,
    ALIGNMENT, RESULTS, REPLACED, CASTS, CAPTURES, REPLAYED, RUNS, TRIALS, STABILITY,
    COSTS, SAVED, STORAGES, MODULE_COSTS, NODE_COSTS, COLLECTIVES, RANKS,
)  # fmt: skip
RUN = (MODULE_TENSORS, PASSES, MEMORY_PLAN, SETTINGS)  # what a log says of its run
GRAPHS = (NODES, EDGES, GRAPH_TENSORS, PARTS, METRICS, CORRESPONDENCE, OVERLAY, *RUN)
TABLES.update({of.name: of for of in (*RECORDING, *GRAPHS)})

__all__ = [
    "ALIGNMENT",
    "BLOCKS",
    "CAPTURES",
    "CASTS",
    "COLLECTIVES",
    "CORRESPONDENCE",
    "COSTS",
    "DIFFS",
    "DTYPES",
    "EDGES",
    "EXPORTS",
    "FAULTS",
    "FINDINGS",
    "GRAPHS",
    "GRAPH_TENSORS",
    "LINES",
    "MEMORY",
    "MEMORY_PLAN",
    "METRICS",
    "MODULES",
    "MODULE_COSTS",
    "MODULE_TENSORS",
    "NODES",
    "NODE_COSTS",
    "OPS",
    "OVERLAY",
    "PARAMETERS",
    "PARTS",
    "PASSES",
    "RANKS",
    "RECORDING",
    "REPLACED",
    "REPLAYED",
    "RESULTS",
    "RUNS",
    "SAMPLES",
    "SAVED",
    "SCHEMA_VERSION",
    "SETTINGS",
    "STABILITY",
    "STACKS",
    "STEPS",
    "STORAGES",
    "TABLES",
    "TENSORS",
    "TEXT",
    "TIMINGS",
    "TRIALS",
    "Column",
    "Table",
    "nullable",
    "table",
]
