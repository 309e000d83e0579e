"""Writes the table of a model's modules as text, a line per module."""

from nbkit import units
from nbkit.analysis.cost.module_table import MODULE_TABLE, module_table
from nbkit.trace.checks import checked_count
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section
from nbkit.views.sections.writers import to_text
from nbkit.views.summary.facts import facts
from nbkit.views.summary.names import shown

WIDTH = 100
COLUMNS = {
    "type": Column("type"),
    "output_shape": Column("output"),
    "params": Column("parameters", "count"),
    "forward_flops": Column("forward", "flops"),
    "backward_flops": Column("backward", "flops"),
    "time_us": Column("time", "time"),
    "held_bytes": Column("held", "bytes"),
}


def module_table_text(trace: Trace, width: int = WIDTH) -> str:
    """Returns the frame of `nbkit.module_table` as text of so many characters, modules indented below what holds them.

    `forward` and `backward` are FLOPs, `held` is memory held at the peak. Columns of which the trace knows nothing are
    left out. Raises OptionError for a trace without modules.
    """
    checked_count("width", width)
    table = MODULE_TABLE.check(module_table(trace))
    known = [name for name in COLUMNS if table[name].notna().any()]
    names = [
        f"{'· ' * depth}{shown(module.rpartition('.')[2] if module else model)}"
        for model, module, depth in table[["model", "module", "depth"]].itertuples(index=False)
    ]
    rows = [list(row) for row in zip(names, *(table[name].tolist() for name in known), strict=True)]
    incomplete = [f"Incomplete: {reason}"] if (reason := facts(trace).incomplete) else []
    title = f"{units.counted(len(table), 'module')} of {shown(str(trace.meta.get('name') or 'a step'))}"
    section = Section(title, [Column("module"), *(COLUMNS[name] for name in known)], rows)
    return "\n".join([*incomplete, *to_text([section], width)[1:]])
