"""Finds blocks of a graph without module paths: the branches of its residual stream, and its repeats as layers."""

from dataclasses import dataclass
from itertools import pairwise

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns import PatternMatch
from nbkit.analysis.structure.patterns.residual import Addition, branch_nodes
from nbkit.analysis.structure.tree import Location

MAIN = ("attention", "time_mix", "channel_mix", "mlp")
TWO_KINDS = "a stretch of the residual stream with two kinds of branches"
Claim = tuple[str, str]


@dataclass
class Blocks:
    """Holds the location of each node of a recognized part, and role and evidence of such locations."""

    locations: dict[int, Location]
    claims: dict[Location, Claim]

    def put(self, nodes: frozenset[int] | set[int], location: Location, claim: Claim | None) -> None:
        """Puts nodes at a location; those that have one move."""
        self.locations.update(dict.fromkeys(nodes, location))
        if claim:
            self.claims[location] = claim


@dataclass(frozen=True)
class Branch:
    """One branch of a stream: its addition, its nodes, what lies in it, and its role if it has one alone."""

    addition: Addition
    nodes: set[int]
    matches: list[PatternMatch]

    @property
    def claim(self) -> Claim | None:
        """Returns role and evidence of the only kind of part in it; None without one or with several."""
        inside = [match for match in self.matches if match.role in MAIN]
        return (inside[0].role, inside[0].evidence) if len({match.role for match in inside}) == 1 else None

    @property
    def name(self) -> str:
        return self.claim[0] if self.claim else "branch"

    def form(self, flow: Flow) -> tuple[str, ...]:
        """Returns what branches that are alike have in common: their role and the sizes of their projections."""
        return (self.name, *sorted(str(flow.shapes[node]) for node in self.nodes if node in flow.projections))


def blocks(flow: Flow, matches: list[PatternMatch], streams: list[list[Addition]]) -> Blocks:
    """Returns the parts that a graph's dataflow makes: layers, what is in them, and what comes before and after."""
    made = Blocks({}, {})
    for at, stream in enumerate(streams):
        top: Location = (f"stream {at}",) if len(streams) > 1 else ()
        _add_stream(made, flow, _branches(flow, stream, matches), top)
        _add_norms_between(made, flow, stream, matches)
    for match in matches:
        if not match.nodes & made.locations.keys() and (name := _name_outside(flow, match, matches, streams)):
            made.put(match.nodes, (name,), (match.role, match.evidence))
    return made


def _branches(flow: Flow, stream: list[Addition], matches: list[PatternMatch]) -> list[Branch]:
    branches = [Branch(addition, branch_nodes(flow, addition), []) for addition in stream]
    home = {node: branch for branch in branches for node in branch.nodes}
    for match in matches:
        branch = home.get(match.result)
        if branch is not None and match.nodes <= branch.nodes:
            branch.matches.append(match)
    return branches


def _add_stream(made: Blocks, flow: Flow, branches: list[Branch], top: Location) -> None:
    period = _period([branch.form(flow) for branch in branches])
    if period is None:
        for at, branch in enumerate(branches):
            _add_branch(made, flow, branch, (*top, f"{branch.name} {at}"))
        return
    times = len(branches) // period
    evidence = f"one of {times} equal stretches of the residual stream" if times > 1 else TWO_KINDS
    for layer in range(times):
        location: Location = (*top, f"layer {layer}")
        members = branches[layer * period : (layer + 1) * period]
        made.put({branch.addition.node for branch in members}, location, ("block", evidence))
        for branch, name in zip(members, _distinct([branch.name for branch in members]), strict=True):
            _add_branch(made, flow, branch, (*location, name))


def _add_branch(made: Blocks, flow: Flow, branch: Branch, location: Location) -> None:
    made.put({node for node in branch.nodes if node not in made.locations}, location, branch.claim)
    for match in branch.matches:
        if match.role == "norm" and (side := _side(flow, match, branch.addition)):
            made.put(match.nodes, (*location[:-1], f"norm {side} {location[-1]}"), (match.role, match.evidence))


def _add_norms_between(made: Blocks, flow: Flow, stream: list[Addition], matches: list[PatternMatch]) -> None:
    """Locates norms that stand between two additions, as those of BERT do, with the branch before them."""
    passed_on = {addition.skip: before for before, addition in pairwise(stream)}
    for match in matches:
        before = passed_on.get(match.result) if match.role == "norm" else None
        if before is not None and before.node in flow.origins(match.result):
            branch = made.locations[flow.origin(before.branch)]
            made.put(match.nodes, (*branch[:-1], f"norm after {branch[-1]}"), (match.role, match.evidence))


def _distinct(names: list[str]) -> list[str]:
    """Returns the names, with a letter where one has come before: attention, attention b."""
    return [
        f"{name} {'abcdefghijklmnopqrstuvwxyz'[names[:at].count(name)]}" if name in names[:at] else name
        for at, name in enumerate(names)
    ]


def _period(forms: list[tuple[str, ...]]) -> int | None:
    """Returns after how many branches a stream repeats itself; None where it does not."""
    for period in range(1, min(len(forms), 6) + 1):
        repeats = len(forms) % period == 0 and all(form == forms[at % period] for at, form in enumerate(forms))
        if repeats and (period < len(forms) or len({form[0] for form in forms} & set(MAIN)) > 1):
            return period
    return None


def _side(flow: Flow, norm: PatternMatch, addition: Addition) -> str | None:
    """Returns whether a norm stands at the start or the end of a branch; None inside of it."""
    if flow.origin(addition.branch) == norm.result:
        return "after"
    return "before" if any(addition.skip in flow.origins(node) for node in norm.nodes) else None


def _name_outside(
    flow: Flow, match: PatternMatch, matches: list[PatternMatch], streams: list[list[Addition]]
) -> str | None:
    """Returns what a part is called that belongs to no stream; None for what is no part of its own."""
    if match.role in ("embedding", "head", "loss"):
        return match.role
    if match.role == "norm" and streams:
        return "final norm" if flow.rank[match.result] > flow.rank[streams[-1][-1].node] else "first norm"
    if match.role not in MAIN:
        return None
    same = [known for known in matches if known.role == match.role]
    return match.role if len(same) == 1 else f"{match.role} {same.index(match)}"
