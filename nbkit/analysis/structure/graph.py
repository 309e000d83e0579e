"""One graph while its structure is recognised: the places of its nodes, and what was told of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from nbkit.analysis.structure.blocks import block_places
from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.mirror import mirror_places
from nbkit.analysis.structure.module_roles import above, checked, module_roles, roles_by_patterns
from nbkit.analysis.structure.patterns import Found, patterns_in
from nbkit.analysis.structure.patterns.residual import Addition, streams
from nbkit.analysis.structure.places import module_place, place_loose
from nbkit.analysis.structure.tree import Place

TREE = "module tree"
SCOPE = re.compile(r'"op_namescope": "([^"]*)"')


@dataclass
class Graph:
    """The nodes of one graph, by their position in `nodes`; the lists have an entry for each position of that frame."""

    name: str
    rows: list[int]
    nodes: pd.DataFrame
    edges: pd.DataFrame
    phases: list[str | None]
    regions: list[str]
    types: Mapping[str, str]
    places: list[Place]
    claims: dict[Place, tuple[str, str]] = field(default_factory=dict)
    modules_at: dict[Place, str] = field(default_factory=dict)

    @cached_property
    def modules(self) -> list[str | None]:
        """Module path of each node; None where there is none."""
        return [module if isinstance(module, str) else None for module in self.nodes["module"].tolist()]

    @cached_property
    def root(self) -> str | None:
        """What the root module is called; None if none is known."""
        return (self.types.get("") or self.name) if any(self.modules[row] == "" for row in self.rows) else None

    @cached_property
    def flow(self) -> Flow:
        """All its nodes."""
        return Flow(self.nodes, self.edges, self.rows)

    @cached_property
    def forward(self) -> Flow:
        """The nodes of its forward, and those that no phase has: parameters, inputs."""
        if not self.is_split:
            return self.flow
        kinds = self.nodes["kind"].tolist()
        late = ("backward", "optimizer", "recompute", "other")
        return Flow(
            self.nodes, self.edges, [r for r in self.rows if self.phases[r] not in late or kinds[r] == "parameter"]
        )

    @cached_property
    def in_order(self) -> list[int]:
        """Its nodes, ops first as they follow on each other, so that parts stand in the order in which they run."""
        if self.name == TREE:
            return self.rows
        kinds = self.flow.kinds
        return sorted(self.flow.order, key=lambda node: kinds[node] != "op")

    @cached_property
    def found(self) -> list[Found]:
        """What the dataflow of its forward says."""
        return [] if self.name == TREE else patterns_in(self.forward)

    @cached_property
    def streams(self) -> list[list[Addition]]:
        """The residual streams of its forward."""
        return streams(self.forward, [one for one in self.found if one.role == "norm"]) if self.found else []

    @property
    def is_flat(self) -> bool:
        """Whether no op of it has a module path."""
        kinds = self.nodes["kind"].tolist()
        return not any(self.modules[row] for row in self.rows if kinds[row] == "op" or self.name == TREE)

    @cached_property
    def is_split(self) -> bool:
        """Whether its phases are told apart."""
        return any(self.regions[row] for row in self.rows)

    def place_all(self) -> None:
        """Fills the place of each of its nodes, and what is known of the places."""
        self._place_scopes()
        if self.is_flat and self.name != TREE:
            self._place_blocks()
        else:
            self._place_modules()
        if self.name != TREE:
            place_loose(self.places, self.flow, self.regions)
        for row in self.rows:
            if not self.places[row] and self.regions[row]:
                self.places[row] = (self.regions[row],)
            elif not self.places[row] and self.modules[row] == "" and self.root is not None:
                self.places[row] = (self.root,)

    def _place_modules(self) -> None:
        known: dict[tuple[str, str], Place] = {}
        for row in self.rows:
            module = self.modules[row]
            if module is not None:
                key = (self.regions[row], module)
                if key not in known:
                    known[key] = module_place(*key, self.root)
                    for path in (module, *above(module)):
                        if path or self.root is not None:
                            self.modules_at[module_place(key[0], path, self.root)] = path
                self.places[row] = known[key]
        paths = set(self.modules_at.values())
        graph_nodes = self.nodes.iloc[self.rows]
        roles = module_roles(graph_nodes, self.types, paths)
        if self.name != TREE:
            additions = [addition.node for stream in self.streams for addition in stream]
            roles = roles_by_patterns(checked(roles, self.forward, self.modules), self.found, self.modules, additions)
        self.claims.update({place: roles[path] for place, path in self.modules_at.items() if path in roles})

    def _place_blocks(self) -> None:
        places, claims = block_places(self.forward, self.found, self.streams)
        top: Place = ("forward",) if self.is_split else (self.root,) if self.root is not None else ()
        for node, place in places.items():
            if self.regions[node] in ("", "forward"):
                self.places[node] = (*top, *place)
        place_loose(self.places, self.forward, self.regions)
        self.claims.update({(*top, *place): told for place, told in claims.items()})
        if self.is_split:
            mirror_places(self.flow, self.phases, self._results(), self.places)
            for copy in ("recompute", "backward"):
                self.claims.update({(copy, *place): told for place, told in claims.items()})
        if self.root is not None and top:
            self.modules_at[top] = ""

    def _place_scopes(self) -> None:
        """Places optimizer and communication ops without a module by the scope that their source names."""
        attributes = self.nodes["attributes"].tolist()
        for row in self.rows:
            region = self.regions[row]
            if region in ("optimizer", "communication") and self.modules[row] is None:
                scope = SCOPE.search(attributes[row]) if isinstance(attributes[row], str) else None
                pieces = [piece for piece in scope.group(1).split("/") if piece] if scope else []
                self.places[row] = (region, *(re.sub(r"_\d+$", "", piece) for piece in pieces[-1:]))

    def _results(self) -> dict[int, str]:
        """Name of the first result of each node that an edge reads; of others their own name."""
        known = self.edges[self.edges["src"].notna()].drop_duplicates("src")
        read = dict(zip(known["src"].astype("int64").tolist(), known["tensor"].tolist(), strict=True))
        names = self.nodes["name"].tolist()
        return {row: read.get(row, names[row]) for row in self.rows}
