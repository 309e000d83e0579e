"""Writes the table of a model's nodes as text, as the Colossal-AI Analyzer lays it out."""

from collections.abc import Sequence

import pandas as pd

from nbkit import units
from nbkit.schema import NODE_COSTS

SIZES = ("accumulate", "incremental", "output", "temp", "param", "backward")
FLOPS = ("forward", "backward")
SINCE = ["shape", "dtype", "device"]  # a frame that was kept from an older nbkit has none of these
OPTIONS = ("attention", "sizing", "layer_norm", "bias")
USUAL = "joined"  # what is not said of biases


def cost_table_text(table: pd.DataFrame) -> str:
    """Returns the frame of `nbkit.cost_table` as text: what was counted, then ten columns, a line per node.

    Sizes have two decimals and the unit that they fill (1024 bytes are 1 KiB), FLOPs the power of 1000 that they
    exceed. Raises SchemaError for another frame.
    """
    table = NODE_COSTS.check(whole(table))
    columns = [["op kind", *table["op_kind"]], ["name", *table["name"]]]
    columns += [[f"{name} size", *map(units.exact_size, table[f"{name}_bytes"].tolist())] for name in SIZES]
    columns += [[f"{name} FLOPs", *map(units.exact_flops, table[f"{name}_flops"])] for name in FLOPS]
    widths = [max(map(len, texts)) for texts in columns]
    lines = [_line(texts, widths) for texts in zip(*columns, strict=True)]
    return "\n".join([*_header(table), lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the frame with the columns that one of an older nbkit lacks."""
    if not isinstance(table, pd.DataFrame) or [*table.columns] != NODE_COSTS.names[: -len(SINCE)]:
        return table
    return table.assign(**NODE_COSTS.frame({str(name): table[name] for name in table})[SINCE])


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))


def _header(table: pd.DataFrame) -> list[str]:
    meaning = told(table)
    if len(meaning) == 1:
        return meaning
    attributes = table.attrs
    title = f"{attributes['model']}: {units.counted(len(table), 'node')}, convention {attributes['convention']}"
    return [title, *meaning, ""]


def told(table: pd.DataFrame) -> list[str]:
    """Returns what the numbers mean, from the attributes of the frame; a frame that was changed may have lost them."""
    attributes = table.attrs
    if "flops" not in attributes:
        return ["How FLOPs and sizes were counted is not known: this frame has lost its attrs."]
    options = ", ".join(
        f"{name.replace('_', ' ')}: {attributes[name]}" for name in OPTIONS if attributes.get(name, USUAL) != USUAL
    )
    return [f"FLOPs: {attributes['flops']}", options[0].upper() + options[1:]]
