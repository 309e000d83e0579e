"""Roles of modules: by names, checked against the ops in them, and by the patterns that lie in them alone."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pandas as pd

from nbkit.analysis.structure.flow import Flow, sizes
from nbkit.analysis.structure.names import Module, role_by_names
from nbkit.analysis.structure.patterns import Found
from nbkit.analysis.structure.rwkv import Shape

Roles = dict[str, tuple[str, str]]
# Of these a module holds one alone, or plays another part.
MAIN = {"attention", "time_mix", "channel_mix", "mlp", "embedding", "head", "loss"}
SOFTMAX = {"softmax", "sdpa"}


def module_roles(nodes: pd.DataFrame, types: Mapping[str, str], paths: Iterable[str]) -> Roles:
    """Role and evidence by module path as far as the names in one graph tell them."""
    parameters: dict[str, dict[str, Shape | None]] = defaultdict(dict)
    held = nodes[(nodes["kind"] == "parameter") & nodes["module"].notna()]
    for module, name, shape in zip(held["module"].tolist(), held["name"].tolist(), held["shape"].tolist(), strict=True):
        known = sizes(shape) if isinstance(shape, str) else None
        form = None if known is None or None in known else tuple(size for size in known if size is not None)
        parameters[module][name.rpartition(".")[2]] = form
    every = set(paths)
    children: dict[str, set[str]] = defaultdict(set)
    for path in every - {""}:
        children[path.rpartition(".")[0]].add(path.rpartition(".")[2])
    roles: Roles = {}
    for path in every:
        module = Module(types.get(path), path.rpartition(".")[2], parameters[path], children[path])
        if told := role_by_names(module):
            roles[path] = told
    return _outermost(roles)


def _outermost(roles: Roles) -> Roles:
    """Without what stands in a module of the same role: the attention in an attention with its output projection."""
    return {
        path: told for path, told in roles.items() if not any(roles.get(a, ("",))[0] == told[0] for a in above(path))
    }


def checked(roles: Roles, flow: Flow, modules: list[str | None]) -> Roles:
    """Without attentions that multiply but have no softmax; `modules` is the path of each node."""
    ops = [node for node in flow.members if flow.kinds[node] == "op"]
    soft, multiplies = set[str](), set[str]()
    for node in ops:
        module = modules[node]
        if module is not None and flow.words[node] in SOFTMAX:
            soft.update((module, *above(module)))
        elif module is not None and flow.words[node] == "matmul":
            multiplies.update((module, *above(module)))
    return {
        path: told for path, told in roles.items() if told[0] != "attention" or path in soft or path not in multiplies
    }


def roles_by_patterns(roles: Roles, found: list[Found], modules: list[str | None], additions: Iterable[int]) -> Roles:
    """Roles with those of modules added in which one pattern lies that is the only one there; the names' come first."""
    homes = {one: home for one in found if (home := _home([modules[node] for node in one.nodes]))}
    inside: dict[str, set[str]] = defaultdict(set)
    for one in found:
        for path in {path for node in one.nodes if (module := modules[node]) for path in (module, *above(module))}:
            inside[path].add(one.role)
    streams = {path for node in additions if (module := modules[node]) is not None for path in (module, *above(module))}
    added: Roles = {}
    for one, home in homes.items():
        others = inside[home] & MAIN - {one.role}
        is_free = home not in roles and not any(roles.get(path, ("",))[0] == one.role for path in above(home))
        if (
            is_free
            and not others
            and home not in streams
            and one.role in (*MAIN, "norm")
            and not _is_part(one, inside[home])
        ):
            added.setdefault(home, (one.role, one.evidence))
    return {**added, **roles}


def _is_part(one: Found, inside: set[str]) -> bool:
    """Whether a norm is only a part of what the module does."""
    return one.role == "norm" and bool(inside - {"norm"})


def _home(modules: list[str | None]) -> str | None:
    """The innermost module that holds all of these; None if that is the root or some have none."""
    paths = [module.split(".") for module in modules if module]
    if len(paths) < len(modules) or not paths:
        return None
    shared = paths[0]
    for path in paths[1:]:
        length = next(
            (at for at, (a, b) in enumerate(zip(shared, path, strict=False)) if a != b), min(len(shared), len(path))
        )
        shared = shared[:length]
    return ".".join(shared) or None


def above(path: str) -> list[str]:
    """The paths of the modules that hold this one, from near to far, the root last."""
    found = []
    while path:
        path = path.rpartition(".")[0]
        found.append(path)
    return found
