"""Finds feed-forward networks: a wide projection, an activation function, and the projection back; gated or not."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import ARITHMETIC, CURVES, PARTS, TRANSPARENT

ELEMENTWISE = CURVES | ARITHMETIC
NEUTRAL = TRANSPARENT | PARTS


def mlps(flow: Flow) -> list[PatternMatch]:
    """Returns each projection, back to the input's width, of an activation function of one or two projections of it."""
    result = []
    for down in flow.order:
        if down not in flow.projections:
            continue
        origins = flow.origins(down)
        if len(origins) != 1 or origins[0] in flow.projections:
            continue
        if (back := flow.back_through(origins[0], ELEMENTWISE | NEUTRAL)) is None:
            continue
        between, ups = back
        words = {flow.does[node] for node in between} - NEUTRAL
        if words & CURVES and _is_back(flow, ups, down):
            result.append(PatternMatch("mlp", frozenset(between | ups | {down}), _evidence(flow, ups, words), down))
    return result


def _is_back(flow: Flow, ups: set[int], down: int) -> bool:
    """Returns whether one or two projections widen one input, and `down` gives its width again."""
    inputs = {origin for up in ups for origin in flow.origins(up)}
    if not 1 <= len(ups) <= 2 or len(inputs) != 1:
        return False
    width, back = _width(flow, inputs.pop()), _width(flow, down)
    wide = [_width(flow, up) for up in ups]
    return width is not None and width == back and all(size is not None and size > width for size in wide)


def _width(flow: Flow, node: int) -> int | None:
    shape = flow.shapes[node]
    return shape[-1] if shape else None


def _evidence(flow: Flow, ups: set[int], words: set[str]) -> str:
    curve = "silu" if "silu" in words or words == {"sigmoid", "multiply"} else next(iter(sorted(words & CURVES)))
    if "swiglu" in words or len(ups) == 2:
        return f"{curve} of one projection times another, projected back to the width of the input"
    return f"{curve} of a projection, projected back to the width of the input"
