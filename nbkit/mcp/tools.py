"""Tools lists what an assistant may call, in the words that it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.mcp import answers
from nbkit.readers.registry import KINDS
from nbkit.schema.findings import SEVERITIES

INSTRUCTIONS = """\
nbkit records what a PyTorch step does, op by op, and what is wrong with it. These tools read saved traces; they change
nothing and run nothing of the user's. Begin with load (or brief) on a trace. Then findings for the evidence, op for one
op with its tensors, query for anything else, diff for two traces, script to reproduce one op alone.
An op_id is the row of an op in the frame ops, from 0 in call order. Names of columns end in their unit: _us is
microseconds, _bytes bytes, _fraction 0 to 1. The module "" is the root model; null is not known."""
PATH = {
    "type": "string",
    "description": "path of the trace, relative to the root folder of this server; also its handle",
}
OP_ID = {"type": "integer", "minimum": 0, "description": "which op: its row in the frame ops, from 0"}
OFFSET = {"type": "integer", "minimum": 0, "default": 0, "description": "how many rows to pass over"}
MOST_ROWS = 1000
PREDICATES = """\
predicates that must all hold; each is {"column", "op", "value"}, with "not": true turned around, or \
{"any": [...]} or {"all": [...]} of others. Columns of text know equals, in (a list), contains (upper and lower case \
alike), regex (RE2; "ignore_case": true) and inside (a module path and all below it); columns of numbers know equals, \
below, at_most, above and at_least (true is 1, false is 0); both know null. Example: \
[{"column": "module", "op": "inside", "value": "encoder"}, {"column": "self_time_us", "op": "above", "value": 100}]"""


@dataclass(frozen=True)
class Tool:
    """Describes a tool: its text and JSON schema, and what answers its calls."""

    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]
    answer: Callable[..., str]

    @property
    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": [*self.required],
            "additionalProperties": False,
        }


def _limit(default: int, least: int = 1) -> dict[str, Any]:
    meaning = f"how many rows at most ({least} to {MOST_ROWS:,})"
    return {"type": "integer", "minimum": least, "maximum": MOST_ROWS, "default": default, "description": meaning}


LOAD = Tool(
    "load",
    f"""\
Opens a trace: a folder that Trace.save() of nbkit wrote, one of the ranks of a job (rank=0, rank=1, ... in it), whose
frames have the column rank and stay in their files, {KINDS}.
Returns JSON: how it was made, its frames with their columns and numbers of rows, the op_ids for which script works, and
the brief. For a path that is a plain folder it names the traces there are.""",
    {"path": PATH},
    ("path",),
    answers.load_answer,
)
BRIEF = Tool(
    "brief",
    """\
Returns in plain text what ran, the verdict, the findings, the worst first, each with module, step, source line and
what to do, and what nobody has looked at. Errors are certainly wrong, warnings very likely not meant, hints worth a
look.""",
    {
        "path": PATH,
        "tokens": {
            "type": "integer", "minimum": 100, "maximum": 20_000, "default": 1500,
            "description": "length in tokens at most, about; findings that do not fit are counted",
        },
    },
    ("path",),
    answers.brief_answer,
)  # fmt: skip
FINDINGS = Tool(
    "findings",
    """\
Returns the findings as JSON rows, the worst first: rule, severity, message, op_id, op, parameter, module, phase, step
(from 0), source line and its text, count of calls or parameters, evidence (op_ids and what was measured), effect_us
(microseconds of the step that it takes), effect_bytes (memory that it takes) and advice. What is null is left out.""",
    {
        "path": PATH,
        "severity": {"type": "string", "enum": [*SEVERITIES], "description": "only those of this severity"},
        "rule": {"type": "string", "description": "only those of this rule, such as no_gradient"},
        "limit": _limit(50),
        "offset": OFFSET,
    },
    ("path",),
    answers.findings_answer,
)
QUERY = Tool(
    "query",
    """\
Returns rows of one frame that fit a filter, sorted, at most 1,000: JSON with the number that matched, the columns, and
rows as lists in their order. Frames are those that load lists, such as ops (one row per call), tensors (inputs and
outputs of ops), modules, parameters, diffs, memory. limit 0 gives the meaning and unit of each column instead.""",
    {
        "path": PATH,
        "frame": {"type": "string", "description": "name of the frame, such as ops"},
        "where": {"type": "array", "items": {"type": "object"}, "default": [], "description": PREDICATES},
        "columns": {
            "type": "array", "items": {"type": "string"}, "default": [],
            "description": "only these columns; all by default",
        },
        "sort": {
            "type": "array", "items": {"type": "object"}, "default": [],
            "description": 'such as [{"column": "self_time_us", "descending": true}]; the first decides first, missing '
            "values come last; call order by default",
        },
        "limit": _limit(50, least=0),
        "offset": OFFSET,
    },
    ("path", "frame"),
    answers.query_answer,
)  # fmt: skip
OP = Tool(
    "op",
    """\
Returns all about one op as JSON (of a job give the path of one rank, such as job/rank=3): its row (op, module, phase,
step, times in microseconds, arguments that are no tensors), the text of its source line, its input and output tensors
(shape, stride, dtype, device, statistics if they were recorded), the ops it called, findings and differences at it, and
whether script works for it.""",
    {"path": PATH, "op_id": OP_ID},
    ("path", "op_id"),
    answers.op_answer,
)
DIFF = Tool(
    "diff",
    """\
Returns in plain text what differs between two traces: of two timings by optime what became slower or faster beyond the
noise of their repeats; of others calls, shapes, dtypes, modules, findings and verdicts, and where the values of tensors
begin to differ if both have statistics.""",
    {
        "left": {**PATH, "description": "path of the earlier or reference trace"},
        "right": {**PATH, "description": "path of the other one"},
        "by": {
            "type": "string", "enum": ["module", "op"], "default": "module",
            "description": "what times are summed by; op is every op in every module",
        },
        "limit": _limit(20),
    },
    ("left", "right"),
    answers.diff_answer,
)  # fmt: skip
SCRIPT = Tool(
    "script",
    """\
Returns a Python script that runs one call of the step alone, with the inputs it had, beside a float64 reference on the
CPU, and prints the difference. It works for calls whose values opdiff captured and the trace was saved with
(save(path, values="captured")); load lists their op_ids. The script is text: nothing is run here.""",
    {"path": PATH, "op_id": OP_ID},
    ("path", "op_id"),
    answers.script_answer,
)
TOOLS = {tool.name: tool for tool in (LOAD, BRIEF, FINDINGS, QUERY, OP, DIFF, SCRIPT)}
