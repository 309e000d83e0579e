"""Blocks of a graph without module paths: the branches of its residual stream, and those that repeat as layers."""

from collections.abc import Mapping

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns import Found
from nbkit.analysis.structure.patterns.residual import Addition, branch_nodes
from nbkit.analysis.structure.tree import Place

MAIN = ("attention", "time_mix", "channel_mix", "mlp")
EVIDENCE = "a stretch of the residual stream with two kinds of branches"
Claims = dict[Place, tuple[str, str]]


def block_places(flow: Flow, found: list[Found], streams: list[list[Addition]]) -> tuple[dict[int, Place], Claims]:
    """Place of each node that belongs to a recognised part, and role and evidence of those places."""
    places: dict[int, Place] = {}
    claims: Claims = {}
    for at, stream in enumerate(streams):
        top: Place = (f"stream {at}",) if len(streams) > 1 else ()
        _place_stream(flow, found, stream, top, places, claims)
    for one in found:
        if not one.nodes & places.keys() and (name := _name_outside(flow, one, found, streams)):
            places.update(dict.fromkeys(one.nodes, (name,)))
            claims[name,] = (one.role, one.evidence)
    return places, claims


def _place_stream(
    flow: Flow, found: list[Found], stream: list[Addition], top: Place, places: dict[int, Place], claims: Claims
) -> None:
    branches = [branch_nodes(flow, addition) for addition in stream]
    roles = [_branch_role(nodes, found) for nodes in branches]
    period = _period([_form(flow, nodes, role) for nodes, role in zip(branches, roles, strict=True)])
    for at, (addition, nodes, role) in enumerate(zip(stream, branches, roles, strict=True)):
        layer: Place = (*top, f"layer {at // period}") if period else top
        name = _free((role or ("branch", ""))[0] if period else f"{(role or ('branch', ''))[0]} {at}", layer, places)
        places.update({node: (*layer, name) for node in nodes if node not in places})
        if role:
            claims[*layer, name] = role
        if period:
            places[addition.node] = layer
            times = len(stream) // period
            claims[layer] = (
                "block",
                f"one of {times} equal stretches of the residual stream" if times > 1 else EVIDENCE,
            )
        for norm in found:
            if norm.role == "norm" and norm.nodes <= nodes and (side := _side(flow, norm, addition)):
                places.update(dict.fromkeys(norm.nodes, (*layer, f"norm {side} {name}")))
                claims[*layer, f"norm {side} {name}"] = ("norm", norm.evidence)


def _branch_role(nodes: set[int], found: list[Found]) -> tuple[str, str] | None:
    """The role of the only kind of part that a branch has; None without one or with several."""
    inside = [one for one in found if one.role in MAIN and one.nodes <= nodes]
    return (inside[0].role, inside[0].evidence) if len({one.role for one in inside}) == 1 else None


def _form(flow: Flow, nodes: set[int], role: tuple[str, str] | None) -> tuple[str, ...]:
    """What branches that are alike have in common: their role and the sizes of their projections."""
    return ((role or ("", ""))[0], *sorted(str(flow.shape(node)) for node in nodes if flow.is_projection(node)))


def _period(forms: list[tuple[str, ...]]) -> int | None:
    """After how many branches a stream repeats itself; None where it does not."""
    for period in range(1, min(len(forms), 6) + 1):
        repeats = len(forms) % period == 0 and all(form == forms[at % period] for at, form in enumerate(forms))
        if repeats and (period < len(forms) or len({form[0] for form in forms} & set(MAIN)) > 1):
            return period
    return None


def _side(flow: Flow, norm: Found, addition: Addition) -> str | None:
    """Whether a norm stands at the start or the end of a branch; None inside of it."""
    if flow.origin(addition.branch) == norm.result:
        return "after"
    return "before" if any(addition.skip in flow.origins(node) for node in norm.nodes) else None


def _free(name: str, layer: Place, places: Mapping[int, Place]) -> str:
    """`name`, or the same with a letter where the layer has one already."""
    taken = {place[len(layer)] for place in places.values() if place[: len(layer)] == layer and len(place) > len(layer)}
    letters = (f"{name} {letter}" for letter in "bcdefghijklmnopqrstuvwxyz")
    return name if name not in taken else next(letter for letter in letters if letter not in taken)


def _name_outside(flow: Flow, one: Found, found: list[Found], streams: list[list[Addition]]) -> str | None:
    """What a part is called that belongs to no stream; None for what is no part of its own."""
    if one.role in ("embedding", "head", "loss"):
        return one.role
    if one.role == "norm" and streams:
        return "final norm" if flow.rank[one.result] > flow.rank[streams[-1][-1].node] else "first norm"
    same = [other for other in found if other.role == one.role]
    if one.role not in MAIN:
        return None
    return one.role if len(same) == 1 else f"{one.role} {same.index(one)}"
