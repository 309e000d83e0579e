"""Says where each node belongs, from the phase, the module path and the readers that it has."""

from collections.abc import Sequence

import pandas as pd

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.tree import Location
from nbkit.ops.kinds import TRANSPARENT

# A graph with any of these is a whole training step: each phase of it is a part at the top, with the modules below.
TRAINING = ("backward", "optimizer")
# A parameter that several phases read belongs to the first of them.
REGIONS = ("forward", "recompute", "backward", "optimizer", "communication", "other")


def regions_of(nodes: pd.DataFrame, phases: pd.Series, is_communication: pd.Series) -> pd.Series:
    """Returns the region of each node: its phase in graphs of a whole training step, communication apart; '' in others.

    What has no phase belongs to the forward if a module holds it, else to its readers: '' for now.
    """
    is_training = nodes["graph"].isin(nodes.loc[phases.isin(TRAINING), "graph"].unique())
    regions = phases.fillna("").where(is_training, "").astype(object)
    regions = regions.where(~(is_training & phases.isna() & nodes["module"].notna()), "forward")
    return regions.where(~(is_training & is_communication), "communication")


def path_of(module: str) -> Location:
    """Returns the names of a module path; of the root none."""
    return tuple(module.split(".")) if module else ()


def module_location(region: str, module: str | None, root: str | None) -> Location:
    """Returns where a module is; `root` is the root's name, None if the graph has none. A region is its own root."""
    if region:
        return (region, *path_of(module or ""))
    if module is None:
        return ()
    return (root, *path_of(module)) if root is not None else path_of(module)


def locate_loose(locations: list[Location], flow: Flow, regions: Sequence[str]) -> None:
    """Gives a location to nodes without one that clearly belong to a part; what has a region stays in it.

    Weights, constants and what is computed from them, and views and casts in the forward, belong where all their
    readers do. Another op does if all that it reads does, too. An assertion and a view that no one reads belong to what
    they look at. Inputs and outputs of the graph stay without a location.
    """
    sinks = {node for node in flow.members if _is_sink(flow, node)}

    def location(node: int) -> Location:
        return locations[node] or ((regions[node],) if regions[node] else ())

    for node in reversed(flow.order):
        if locations[node] or node in sinks or flow.kinds[node] in ("input", "output"):
            continue
        is_simple = flow.is_held[node] or (flow.does[node] in TRANSPARENT and regions[node] in ("", "forward"))
        around = [location(reader) for reader in flow.readers[node] if reader not in sinks]
        if not is_simple:
            around += [location(src) for src in flow.moving[node]]
        if all(around):
            locations[node] = common(around, regions[node])
    for node in sinks:
        if not locations[node]:
            locations[node] = common([locations[src] for src in flow.reads[node]], regions[node])


def _is_sink(flow: Flow, node: int) -> bool:
    """Returns whether an op hands nothing on: an assertion, or a view or copy that no one reads."""
    if flow.readers[node] or flow.kinds[node] != "op":
        return False
    return flow.does[node] in TRANSPARENT or flow.shapes[node] is None


def common(locations: list[Location], region: str) -> Location:
    """Returns the innermost location that holds all of these in a region, or in the first region that they lie in."""
    locations = [location for location in locations if location and region in ("", location[0])]
    if len({location[0] for location in locations} & set(REGIONS)) > 1:
        first = min(REGIONS.index(location[0]) for location in locations if location[0] in REGIONS)
        locations = [location for location in locations if location[0] == REGIONS[first]]
    shared: Location = locations[0] if locations else ()
    for location in locations[1:]:
        length = next(
            (at for at, (first, second) in enumerate(zip(shared, location, strict=False)) if first != second), None
        )
        shared = shared[: min(len(shared), len(location)) if length is None else length]
    return shared
