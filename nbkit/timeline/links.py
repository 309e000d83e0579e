"""Links each event to its parent, the forward op of a backward event, its module and its phase."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nbkit.timeline import names
from nbkit.timeline.events import ABSENT, HOST, KERNEL, MODULE, RUNTIME, Events, Ints
from nbkit.timeline.nesting import depth_levels, inherited, parents

PHASES = ("forward", "backward", "optimizer", "other")
FORWARD, BACKWARD, OPTIMIZER, OTHER = range(4)
Flags = npt.NDArray[np.bool_]


@dataclass
class Links:
    """Holds what each event belongs to, as indices of events; -1 is none."""

    parent: Ints
    levels: list[Ints]  # indices level by level, parents first
    forward: Ints  # the forward op whose gradient it computes
    owner: Ints  # the module call it is of
    phase: Ints  # index into PHASES


def link(events: Events) -> Links:
    """Returns the links of events that stand in call order."""
    parent = all_parents(events)
    levels = depth_levels(parent)
    is_node = events.called(lambda name: name.startswith(names.BACKWARD_NODE))
    forward_of = forward_events(events, parent, is_node)
    owner, forward = owners(events, parent, levels, is_node, forward_of)
    return Links(parent, levels, forward, owner, phases(events, parent, levels, is_node, owner, forward_of))


def all_parents(events: Events) -> Ints:
    """Returns the index of the event around each; of device work the runtime call that launched it, else the op."""
    parent = np.full(len(events), ABSENT, dtype=np.int64)
    host = np.flatnonzero(events.kind != KERNEL)
    start, duration = events.start_ns[host], events.duration_ns[host]
    inside = parents(events.thread[host], start, start + duration)
    parent[host] = np.where(inside >= 0, host[inside], ABSENT)
    work = np.flatnonzero(events.kind == KERNEL)
    parent[work] = launches(events, work)
    return parent


def launches(events: Events, work: Ints) -> Ints:
    """Returns the index of the runtime call that launched each of these events of device work, else of the op."""
    launch = _rows_by_id(events, "correlation", events.kind == RUNTIME)
    op = _rows_by_id(events, "own_id", events.kind == HOST)
    ids = zip(*(events.integers(name)[work].tolist() for name in ("correlation", "external_id")), strict=True)
    launched_by = [launch.get(correlation, op.get(external, ABSENT)) for correlation, external in ids]
    return np.array(launched_by, dtype=np.int64)


def _rows_by_id(events: Events, name: str, wanted: Flags) -> dict[int, int]:
    ids = events.integers(name)
    rows = np.flatnonzero(wanted & (ids > 0))
    return dict(zip(ids[rows].tolist(), rows.tolist(), strict=True))


def forward_events(events: Events, parent: Ints, is_node: Flags) -> Ints:
    """Returns per backward node the forward op that made it; -1 elsewhere.

    An op that makes a node takes autograd's next sequence number, which all ops since the node before have seen as the
    next: of those with the node's number the op that began last made it.
    """
    if events.forward is not None:
        return np.where(is_node, events.forward, ABSENT)
    result = np.full(len(events), ABSENT, dtype=np.int64)
    sequence, forward_thread = node_sequences(events, parent, is_node)
    ops = np.flatnonzero((events.kind == HOST) & (sequence >= 0) & (forward_thread <= 0) & ~is_node)
    made = dict(zip(zip(events.thread[ops].tolist(), sequence[ops].tolist(), strict=True), ops.tolist(), strict=True))
    for row in np.flatnonzero(is_node & (sequence >= 0)).tolist():
        result[row] = made.get((int(forward_thread[row]), int(sequence[row])), ABSENT)
    return result


def node_sequences(events: Events, parent: Ints, is_node: Flags) -> tuple[Ints, Ints]:
    """Returns `sequence` and `forward_thread` of the events; a node that has none has those of its call inside it.

    The profiler gives both to the node itself only where its call is the first thing inside: not after a tensor's hook.
    """
    sequence, forward_thread = events.integers("sequence").copy(), events.integers("forward_thread").copy()
    inside = np.append(is_node & (sequence < 0), False)[parent] & (sequence >= 0)
    for row in np.flatnonzero(inside).tolist():
        node = parent[row]
        if events.name[node] == f"{names.BACKWARD_NODE}{events.name[row]}":
            sequence[node], forward_thread[node] = sequence[row], forward_thread[row]
    return sequence, forward_thread


def owners(events: Events, parent: Ints, levels: list[Ints], is_node: Flags, forward_of: Ints) -> tuple[Ints, Ints]:
    """Returns per event the module call it is of, and the forward op whose gradient it computes.

    Backward work is of the module of its forward op. A gradient is accumulated right after the node that completed it,
    and is of that node's module.
    """
    is_module = events.kind == MODULE
    anchor = inherited(parent, levels, is_module | is_node)
    owner_of = np.full(len(events) + 1, ABSENT, dtype=np.int64)  # per anchor; the last entry answers for -1
    last: dict[int, int] = {}
    for row in np.flatnonzero(is_module | is_node).tolist():
        if is_module[row]:
            owner_of[row] = row
            continue
        thread = int(events.thread[row])
        if forward_of[row] >= 0:
            owner_of[row] = last[thread] = owner_of[anchor[forward_of[row]]]
        elif events.name[row] == names.ACCUMULATION:
            owner_of[row] = last.get(thread, ABSENT)
        else:
            last.pop(thread, None)
    # Work of a module that runs again during the backward pass computes no gradient.
    node = np.where((anchor >= 0) & is_node[anchor], anchor, ABSENT)
    return owner_of[anchor], np.where(node >= 0, forward_of[node], ABSENT)


def phases(events: Events, parent: Ints, levels: list[Ints], is_node: Flags, owner: Ints, forward_of: Ints) -> Ints:
    """Returns per event its phase, an index into PHASES; the innermost call around the event decides."""
    backward = is_node | events.called(lambda name: name in names.BACKWARD_CALLS)
    optimizer, module = events.named(names.is_optimizer_call), events.kind == MODULE
    again = module & (inherited(parent, levels, backward) >= 0)
    own = np.full(len(events) + 1, OTHER, dtype=np.int64)  # the last entry answers for -1
    for which, number in ((module, FORWARD), (backward | again, BACKWARD), (optimizer, OPTIMIZER)):
        own[:-1][which] = number
    phase = own[inherited(parent, levels, backward | optimizer | module)]
    # A step that calls a closure does forward work too: the ops whose gradient it takes before it ends.
    step_of = inherited(parent, levels, optimizer)
    nodes = np.flatnonzero(forward_of >= 0)
    made = forward_of[nodes]
    is_forward = (phase[made] == OTHER) | ((phase[made] == OPTIMIZER) & (step_of[made] == step_of[nodes]))
    phase[made[is_forward]] = FORWARD
    return _spread(events, parent, levels, phase, made)


def _spread(events: Events, parent: Ints, levels: list[Ints], phase: Ints, made: Ints) -> Ints:
    """Spreads forward work: an op outside modules does it if an op in it makes a node, and so do all ops in it.

    `made` are the calls that made a node: ops, and functions with a backward of their own.
    """
    is_op = events.is_dispatcher_call | (events.kind == RUNTIME) | events.called(names.is_python_call)
    is_op[made] = True
    is_op = inherited(parent, levels, is_op) >= 0  # whatever runs inside an op is part of it
    for rows in reversed(levels[1:]):
        above = parent[rows]
        phase[above[(phase[rows] == FORWARD) & is_op[above] & _is_loose(phase[above])]] = FORWARD
    for rows in levels[1:]:
        above = parent[rows]
        takes = _is_loose(phase[rows]) & is_op[above] & (phase[above] == FORWARD)
        phase[rows[takes]] = FORWARD
    return phase


def _is_loose(phase: Ints) -> Flags:
    """Returns which of these phases say only what is around an op, not what the op is for."""
    return np.isin(phase, (OTHER, OPTIMIZER))
