"""Finds RWKV without names: channel mix is a gated square of relu, time mix a gated mean weighted by exponentials."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.ops.kinds import SQUARES


def mixes(flow: Flow) -> list[PatternMatch]:
    """Returns every sigmoid(receptance) * value(relu(key) squared), and every output(sigmoid(receptance) * wkv).

    wkv is an op of that name, or a quotient of weighted sums.
    """
    mixes = [_channel_mix(flow, *gated) or _time_mix(flow, *gated) for gated in _gated(flow)]
    return [mix for mix in mixes if mix is not None]


def _channel_mix(flow: Flow, product: int, gate: int, value: int) -> PatternMatch | None:
    if value not in flow.projections or (key := _squared_relu(flow, value)) is None:
        return None
    between, keys = flow.back_to_projections(value)
    nodes = {product, gate, key, value} | between | keys | set(flow.origins(gate))
    return PatternMatch(
        "channel_mix", frozenset(nodes), "sigmoid of a projection times a projection of relu squared", product
    )


def _time_mix(flow: Flow, product: int, gate: int, value: int) -> PatternMatch | None:
    outputs = flow.projected_by(product)
    is_op = "wkv" in flow.does[value]
    if len(outputs) != 1 or not (is_op or flow.does[value] == "divide"):
        return None
    between, projections = flow.back_to_projections(value)
    if not is_op and not (len(projections) == 2 and _has_exponentials(flow, value)):
        return None
    what = f"a {flow.op(value)} op" if is_op else "a quotient of sums that exp() weights"
    nodes = {product, gate, outputs[0]} | between | projections | set(flow.origins(gate))
    return PatternMatch("time_mix", frozenset(nodes), f"sigmoid of a projection times {what}", outputs[0])


def _gated(flow: Flow) -> list[tuple[int, int, int]]:
    """Returns products of a sigmoid of a projection with something else: the product, the sigmoid, the other."""
    result = []
    for node in flow.order:
        if flow.does[node] != "multiply":
            continue
        origins = flow.origins(node)
        for gate, value in (origins, origins[::-1]) if len(origins) == 2 else ():
            if flow.does[gate] == "sigmoid" and gate != value:
                inputs = flow.origins(gate)
                # x * sigmoid(x) is silu, and no gate.
                if len(inputs) == 1 and inputs[0] in flow.projections and inputs[0] != value:
                    result.append((node, gate, value))
    return result


def _squared_relu(flow: Flow, value: int) -> int | None:
    """Returns the square of a relu of a projection that `value` projects; None if it does not."""
    squares = flow.origins(value)
    if len(squares) != 1 or flow.does[squares[0]] not in SQUARES:
        return None
    relus = set(flow.origins(squares[0]))
    is_relu = len(relus) == 1 and flow.does[next(iter(relus))] == "relu"
    return squares[0] if is_relu else None


def _has_exponentials(flow: Flow, quotient: int) -> bool:
    """Returns whether both what is divided and what divides it were weighted by exp()."""
    origins = flow.origins(quotient)
    if len(origins) != 2:
        return False
    return all("exp" in {flow.does[node] for node in flow.back_to_projections(origin)[0]} for origin in origins)
