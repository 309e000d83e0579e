"""A rule about results that a line makes and drops, such as those of x.masked_fill(...) without the underscore."""

import ast
from collections.abc import Iterator

from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.finding import Finding, rule
from nbkit.ops.families import CASTS, DRAWS

# Who waits for a device casts, and who brings a generator forward draws.
MEANT = DRAWS.union(CASTS)
ADVICE = "Assign the result, x = x.{0}(...); a method whose name ends in _ changes x itself."


@rule("warning", rank=43)
def dropped_result(flow: Flow) -> Iterator[Finding]:
    """A line does nothing but to make a tensor that no op reads, such as `x.masked_fill(mask, 0)`."""
    sources, parents = (flow.step.ops[name].tolist() for name in ("source", "parent_id"))
    last_ahead = max((op.op_id for op in flow.ops.values() if op.is_ahead), default=-1)
    asked = {parents[op_id]: flow.ops[op_id] for op_id in sorted(flow.asked) if op_id in flow.ops}
    for parent, op in asked.items():
        method = flow.step.ops["op"].iloc[int(parent)].rpartition(".")[2]
        if not op.is_ahead or op.op_id == last_ahead or op.name in MEANT or not op.outputs or flow.readers(op):
            continue
        if method == _dropped(flow.texts.get(sources[op.op_id], "")) and not _is_kept(op):
            message = f"{method} makes a tensor that no op reads, and its line does nothing else: it changes nothing"
            yield dropped_result.finding(message, ADVICE.format(method), op.op_id)


def _is_kept(op: Op) -> bool:
    """Returns whether the result is what was there before: of an op in place, or of one that had nothing to do."""
    return any(made.tensor_id in {read.tensor_id for read in op.inputs} for made in op.outputs)


def _dropped(text: str) -> str | None:
    """Returns the method that a line calls whose result it drops; null where it computes in what it gives it, too."""
    try:
        (line,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement, or several
        return None
    call = line.value if isinstance(line, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    computes = any(isinstance(node, ast.BinOp | ast.Call | ast.UnaryOp) for one in given for node in ast.walk(one))
    return None if computes else call.func.attr
