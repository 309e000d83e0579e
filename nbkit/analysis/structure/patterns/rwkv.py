"""RWKV without names: channel mix is a gated square of relu, time mix a gated mean weighted by exponentials."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.found import Found


def channel_mixes(flow: Flow) -> list[Found]:
    """Every sigmoid(receptance) * value(relu(key) squared)."""
    found = []
    for node, gate, value in _gated(flow):
        if flow.is_projection(value) and (key := _squared_relu(flow, value)) is not None:
            between, keys = flow.back_to_projections(value)
            nodes = {node, gate, key, value} | between | keys | set(flow.origins(gate))
            evidence = "sigmoid of a projection times a projection of relu squared"
            found.append(Found("channel_mix", frozenset(nodes), evidence, node))
    return found


def time_mixes(flow: Flow) -> list[Found]:
    """Every output(sigmoid(receptance) * wkv), where wkv is an op of that name or a quotient of weighted sums."""
    found = []
    for node, gate, value in _gated(flow):
        outputs = flow.projected_by(node)
        if len(outputs) != 1:
            continue
        between, projections = flow.back_to_projections(value)
        if "wkv" in flow.does[value]:
            evidence = f"sigmoid of a projection times a {flow.op(value)} op"
        elif flow.does[value] == "divide" and len(projections) == 2 and _has_exponentials(flow, value):
            evidence = "sigmoid of a projection times a quotient of sums that exp() weights"
        else:
            continue
        nodes = {node, gate, outputs[0]} | between | projections | set(flow.origins(gate))
        found.append(Found("time_mix", frozenset(nodes), evidence, outputs[0]))
    return found


def _gated(flow: Flow) -> list[tuple[int, int, int]]:
    """Products of a sigmoid of a projection with something else: the product, the sigmoid, the other."""
    found = []
    for node in flow.order:
        if flow.does[node] != "multiply":
            continue
        origins = flow.origins(node)
        for gate, value in (origins, origins[::-1]) if len(origins) == 2 else ():
            if flow.does[gate] == "sigmoid" and gate != value:
                inputs = flow.origins(gate)
                # x * sigmoid(x) is silu, and no gate.
                if len(inputs) == 1 and flow.is_projection(inputs[0]) and inputs[0] != value:
                    found.append((node, gate, value))
    return found


def _squared_relu(flow: Flow, value: int) -> int | None:
    """The square of a relu of a projection that `value` projects; None if it does not."""
    squares = flow.origins(value)
    if len(squares) != 1 or flow.does[squares[0]] not in ("square", "power", "multiply"):
        return None
    relus = set(flow.origins(squares[0]))
    is_relu = len(relus) == 1 and flow.does[next(iter(relus))] == "relu"
    return squares[0] if is_relu else None


def _has_exponentials(flow: Flow, quotient: int) -> bool:
    """Whether both what is divided and what divides it were weighted by exp()."""
    origins = flow.origins(quotient)
    if len(origins) != 2:
        return False
    return all("exp" in {flow.does[node] for node in flow.back_to_projections(origin)[0]} for origin in origins)
