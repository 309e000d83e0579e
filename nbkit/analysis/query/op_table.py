"""Encodes the columns of the op table: those of the ops, and four that are made of other frames."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Columns, TextColumn, text_column
from nbkit.analysis.structure.module_repeats import folded_path, module_repeats
from nbkit.schema import OPS, TENSORS, TEXT

OUTPUT, LOCATION, LAYER, SOURCE_TEXT = MADE = ("output", "location", "layer", "source_text")
TEXT_COLUMNS = tuple(column.name for column in OPS.columns if column.dtype == "str")
NUMBER_COLUMNS = tuple(column.name for column in OPS.columns if column.dtype != "str")
# What ops outside modules belong to, by phase.
OUTSIDE = {
    "forward": "(loss and other forward ops)",
    "backward": "(backward outside modules)",
    "optimizer": "(optimizer)",
}
PYTHON, OTHER = "(Python and named ranges)", "(other ops)"
ROOT = "(root)"


def encode(ops: pd.DataFrame, tensors: pd.DataFrame, line_texts: Mapping[str, str] | None = None) -> Columns:
    """Returns the columns of the ops, and text columns of more frames.

    `output` is dtype and shape of each op's first output, `location` its module or what it belongs to outside of all,
    `layer` the same with the pattern of repeated layers, `source_text` the text of its source line, `own_source`
    the user's own line of every op where it is not the source of all. A backward op that has no line has that of its
    forward op.
    """
    texts = {name: text_column(ops[name]) for name in TEXT_COLUMNS}
    texts["source"] = source_lines(ops)
    if len(texts["own_source"].values):
        texts["own_source"] = text_column(ops["own_source"].fillna(ops["source"]))
    numbers = {name: ops[name].to_numpy(np.float64, na_value=np.nan) for name in NUMBER_COLUMNS}
    location, layer = _locations(texts, module_repeats(ops))
    made = {
        OUTPUT: _first_outputs(TENSORS.check(tensors), len(ops)),
        LOCATION: location,
        LAYER: layer,
        SOURCE_TEXT: _recoded(texts["source"], (line_texts or {}).get),
    }
    return Columns(len(ops), {**texts, **made}, numbers)


def source_lines(ops: pd.DataFrame) -> TextColumn:
    """Returns the line of each op; of a backward op that has none that of its forward op."""
    source = text_column(ops["source"])
    forward = ops["forward_op_id"].to_numpy(np.int64, na_value=-1)
    # Single calls of a trace may stand here without the ops they are linked to.
    is_known = (source.codes < 0) & (forward >= 0) & (forward < len(ops))
    return TextColumn(source.values, np.where(is_known, source.codes[np.where(is_known, forward, 0)], source.codes))


def _locations(
    texts: Mapping[str, TextColumn], repeats: Mapping[tuple[str, str], str]
) -> tuple[TextColumn, TextColumn]:
    """Returns the columns `location` and `layer`."""
    model, module, phase, level = (texts[name] for name in ("model", "module", "phase", "level"))
    sizes = [len(column.values) + 1 for column in (model, module, phase)]
    is_range = level.where((level.values == "range").to_numpy(bool), missing=False)
    is_inside = module.codes >= 0
    keys = np.where(is_inside, (model.codes + 1) * sizes[1] + module.codes + 1, -1 - 2 * (phase.codes + 1) - is_range)
    codes, different = pd.factorize(keys)
    inside = [divmod(int(key), sizes[1]) if key >= 0 else None for key in different]
    named = [None if at is None else (_text(model, at[0] - 1), _text(module, at[1] - 1)) for at in inside]
    outside = [_outside(_text(phase, int(-1 - key) // 2 - 1), bool(int(-1 - key) % 2)) for key in different]
    locations = [at[1] or ROOT if at else text for at, text in zip(named, outside, strict=True)]
    layers = [folded_path(*at, repeats) or ROOT if at else text for at, text in zip(named, outside, strict=True)]
    return _by_code(codes, locations), _by_code(codes, layers)


def _outside(phase: str, is_range: bool) -> str:
    return OUTSIDE.get(phase, PYTHON if is_range else OTHER)


def _text(column: TextColumn, code: int) -> str:
    return str(column.values.iloc[code]) if code >= 0 else ""


def _by_code(codes: np.ndarray, texts: list[str]) -> TextColumn:
    different, values = pd.factorize(pd.Series(texts, dtype=TEXT))
    return TextColumn(pd.Series(values, dtype=TEXT), np.asarray(different, np.intp)[codes])


def _recoded(column: TextColumn, text_of: Callable[[str], str | None]) -> TextColumn:
    """Returns the column with another text for each of its own."""
    codes, values = pd.factorize(pd.Series([text_of(str(text)) for text in column.values], dtype=TEXT))
    return TextColumn(pd.Series(values, dtype=TEXT), np.append(codes, -1)[column.codes])


def _first_outputs(tensors: pd.DataFrame, n_ops: int) -> TextColumn:
    is_first = (tensors["role"] == "output").to_numpy(bool) & (tensors["position"] == 0).to_numpy(bool)
    first = tensors.loc[is_first, ["op_id", "dtype", "shape"]]
    dtype_codes, dtypes = pd.factorize(first["dtype"])
    shape_codes, shapes = pd.factorize(first["shape"])
    pairs, pair_codes = np.unique(dtype_codes * max(len(shapes), 1) + shape_codes, return_inverse=True)
    texts = [f"{dtypes[pair // len(shapes)]} {shapes[pair % len(shapes)]}" for pair in pairs]
    codes = np.full(n_ops, -1, np.intp)
    codes[first["op_id"].to_numpy()] = pair_codes
    return TextColumn(pd.Series(texts, dtype=TEXT), codes)
