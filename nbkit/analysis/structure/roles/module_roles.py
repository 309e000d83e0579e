"""Finds roles of modules: by names, checked against the ops in them, and by the patterns that lie in them alone."""

from collections import defaultdict
from collections.abc import Set
from functools import cache

from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.patterns import PatternMatch
from nbkit.analysis.structure.roles.names import Module, role_by_names
from nbkit.analysis.structure.roles.rwkv import Shape
from nbkit.step.decode import Shape as Sizes

Roles = dict[str, tuple[str, str]]
# Of these a module holds one alone, or plays another part.
MAIN = {"attention", "time_mix", "channel_mix", "mlp", "embedding", "head", "loss"}
# What mixes positions.
MIXERS = {"attention", "time_mix"}
SOFTMAX = {"softmax", "attention"}


def module_roles(graph: Graph, paths: Set[str]) -> Roles:
    """Returns role and evidence by module path as far as the names in a graph tell them."""
    source = graph.source
    parameters: dict[str, dict[str, Shape | None]] = defaultdict(dict)
    for row in graph.rows:
        module = source.modules[row]
        if source.kinds[row] == "parameter" and module is not None:
            parameters[module][source.names[row].rpartition(".")[2]] = _form(source.shapes[row])
    children: dict[str, set[str]] = defaultdict(set)
    for path in paths - {""}:
        children[path.rpartition(".")[0]].add(path.rpartition(".")[2])
    roles: Roles = {}
    for path in paths:
        named = Module(graph.types.get(path), path.rpartition(".")[2], parameters[path], children[path])
        if role := role_by_names(named):
            roles[path] = role
    return _outermost(_with_blocks(roles))


def _with_blocks(roles: Roles) -> Roles:
    """Returns the roles with blocks for what holds the projections of its feed-forward itself, and an attention."""
    around = {path: role for inner, (role, _) in roles.items() if role in MIXERS for path in above(inner)}
    blocks = {path: around[path] for path, (role, _) in roles.items() if role == "mlp" and path in around}
    return roles | {path: ("block", f"{roles[path][1]}, and {mixer} in it") for path, mixer in blocks.items()}


def _form(shape: Sizes | None) -> Shape | None:
    sizes = tuple(size for size in shape or () if size is not None)
    return sizes if shape is not None and len(sizes) == len(shape) else None


def _outermost(roles: Roles) -> Roles:
    """Drops roles inside a module of the same role: the attention in an attention with its output projection.

    A module that holds a norm beside is more than that (T5LayerSelfAttention), and loses the role instead.
    """
    normed = {path.rpartition(".")[0] for path, role in roles.items() if role[0] == "norm"}
    wrappers = {a for path, role in roles.items() for a in above(path) if a in normed and _role(roles, a) == role[0]}
    kept = {path: role for path, role in roles.items() if path not in wrappers}
    return {path: role for path, role in kept.items() if not any(_role(kept, a) == role[0] for a in above(path))}


def _role(roles: Roles, path: str) -> str:
    return roles[path][0] if path in roles else ""


def checked(roles: Roles, graph: Graph) -> Roles:
    """Returns the roles without attentions that multiply but have no softmax."""
    flow, modules = graph.forward, graph.source.modules
    soft, multiplies = set[str](), set[str]()
    for node in flow.members:
        module = modules[node]
        if module is not None and flow.does[node] in SOFTMAX:
            soft.update((module, *above(module)))
        elif module is not None and flow.does[node] == "matmul":
            multiplies.update((module, *above(module)))
    return {p: role for p, role in roles.items() if role[0] != "attention" or p in soft or p not in multiplies}


def roles_by_patterns(roles: Roles, graph: Graph) -> Roles:
    """Adds the roles of modules that hold exactly one pattern; roles from names win."""
    modules = graph.source.modules
    inside: dict[str, set[str]] = defaultdict(set)
    for match in graph.matches:
        for module in {module for node in match.nodes if (module := modules[node]) is not None}:
            for path in (module, *above(module)):
                inside[path].add(match.role)
    additions = [addition.node for stream in graph.streams for addition in stream]
    streams = {path for node in additions if (module := modules[node]) for path in (module, *above(module))}
    added: Roles = {}
    for match in graph.matches:
        home = _home([modules[node] for node in match.nodes])
        if home is None or home in roles or home in streams or match.role not in (*MAIN, "norm"):
            continue
        is_alone = not inside[home] & MAIN - {match.role} and not _is_part(match, inside[home])
        if is_alone and not any(_role(roles, path) == match.role for path in above(home)):
            added.setdefault(home, (match.role, match.evidence))
    return {**added, **roles}


def _is_part(match: PatternMatch, inside: set[str]) -> bool:
    """Returns whether a norm is only a part of what the module does."""
    return match.role == "norm" and bool(inside - {"norm"})


def _home(modules: list[str | None]) -> str | None:
    """Returns the innermost module that holds all of these; None if that is the root or some have none."""
    paths = [module.split(".") for module in modules if module]
    if len(paths) < len(modules):
        return None
    shared = paths[0]
    for path in paths[1:]:
        length = next(
            (at for at, (a, b) in enumerate(zip(shared, path, strict=False)) if a != b), min(len(shared), len(path))
        )
        shared = shared[:length]
    return ".".join(shared) or None


@cache
def above(path: str) -> tuple[str, ...]:
    """Returns the paths of the modules that hold this one, from near to far, the root last."""
    parent = path.rpartition(".")[0]
    return (parent, *above(parent)) if path else ()
