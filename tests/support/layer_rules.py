"""The rules of imports, checked by reading them: what each layer of nbkit may import, and no circles."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# From the bottom up; layers of one line are siblings and do not import each other.
RANKS = (
    ("compat",),
    ("base",),
    ("trace",),
    ("findings",),
    ("analysis", "capture", "readers", "simulated"),
    ("views",),
    ("verbs",),
    ("magics", "mcp"),
    ("root",),
    ("command_line",),
)
TOP_FILES = {
    **dict.fromkeys(("errors", "patterns", "progress", "units"), "base"),
    "__init__": "root",
    "__main__": "command_line",
}
BASE_FOLDERS = dict.fromkeys(
    ("schema", "numerics", "ops", "step", "timeline", "divergence", "graphs", "devices"), "base"
)
FRAMES = {"numpy", "pandas"}
# What a module of compat imports; only a layer that may import that may import the module.
COMPAT = {"text_dtype": "pandas", "torch_versions": "torch"}
THIRD_PARTY = {
    "base": FRAMES | {"pyarrow"},
    "trace": FRAMES | {"pyarrow", "safetensors", "duckdb"},
    "findings": FRAMES,
    "analysis": FRAMES | {"pyarrow"},
    "capture": FRAMES | {"pyarrow", "torch", "scipy"},
    "simulated": FRAMES | {"torch"},
    "readers": FRAMES | {"pyarrow", "onnx", "onnxruntime", "duckdb"},
    "views": FRAMES | {"anywidget", "ipywidgets", "traitlets", "plotly", "matplotlib"},
    "verbs": {"pandas"},
    "magics": {"IPython"},
    "mcp": FRAMES | {"pyarrow", "mcp"},
    "command_line": FRAMES,
    "root": {"IPython"},  # load_ipython_extension, which IPython looks for there
    "sample_models": {"torch", "sample_models", "nbkit"},
    "notebooks": {*FRAMES, "torch", "IPython", "plotly", "matplotlib", "sample_models", "nbkit"},
    "compat": FRAMES | {"pyarrow", "torch", "IPython"},
}


# A file or folder: the parts of its path below the package.
Parts = tuple[str, ...]


@dataclass(frozen=True)
class Import:
    """One imported module, and the line that imports it."""

    module: str
    line: int


def layer_of(path: Path) -> str | None:
    """The layer of a file given by its path inside nbkit/; None where the rule names none."""
    folder = path.parts[0] if len(path.parts) > 1 else ""
    if folder:
        return BASE_FOLDERS.get(folder, folder if any(folder in siblings for siblings in RANKS) else None)
    return TOP_FILES.get(path.stem)


@cache
def imports(source: str, package: str = "") -> tuple[Import, ...]:
    """Every import of a module's source, also those inside functions and of `import_module("name")`."""
    return tuple(_imports(source, package))


def _imports(source: str, package: str) -> Iterator[Import]:
    for node in _nodes(ast.parse(source), with_expressions="import_module" in source or "__import__" in source):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in {"import_module", "__import__"}:
            yield from (Import(a.value, node.lineno) for a in node.args if isinstance(a, ast.Constant))


def _nodes(node: ast.AST, with_expressions: bool) -> Iterator[ast.AST]:
    """A module's statements at every depth, and its expressions, which are most of it, where they are wanted."""
    for child in ast.iter_child_nodes(node):
        if with_expressions or not isinstance(child, ast.expr):
            yield child
            yield from _nodes(child, with_expressions)


def _name(function: ast.expr) -> str:
    """The name by which a function is called, without what stands before its dot."""
    return getattr(function, "attr", getattr(function, "id", ""))


def broken_rules(root: Path) -> list[str]:
    """One sentence per import under `root`/nbkit that breaks the layer rule, with its file and line."""
    found = []
    for file in sorted((root / "nbkit").rglob("*.py")):
        path = file.relative_to(root / "nbkit")
        layer = layer_of(path)
        if layer is None:
            found.append(f"nbkit/{path}: is in no layer; put it in one, or name it in tests/support/layer_rules.py")
            continue
        package = ".".join(["nbkit", *path.parts[:-1]])
        for used in imports(file.read_text(), package):
            if reason := _reason(layer, used.module, root):
                found.append(f"nbkit/{path}:{used.line}: {layer} imports {used.module}, but {reason}")
    return found


def circles(root: Path) -> list[str]:
    """One line per circle: rooms of one folder of `root`/nbkit, files or folders, that import each other."""
    edges = _file_imports(root / "nbkit")
    found = []
    for folder in sorted({file[:depth] for file in edges for depth in range(len(file))}):
        rooms: dict[str, set[str]] = {}
        for file, targets in edges.items():
            here = _room(file, folder)
            rooms.setdefault(here, set()).update(_room(target, folder) for target in targets)
        for room in _in_circles(rooms):
            found.append(f"{'/'.join(['nbkit', *folder, room])} imports what imports it")
    return found


def _file_imports(package: Path) -> dict[Parts, set[Parts]]:
    """Per file the files of the package that it imports; faces (`__init__.py`) only hand names on."""
    files = [(file, file.relative_to(package).parts) for file in package.rglob("*.py")]
    names = {".".join([package.name, *parts]).removesuffix(".py"): parts for _, parts in files}
    edges: dict[Parts, set[Parts]] = {}
    for file, parts in files:
        if file.name == "__init__.py":
            continue
        used = [
            names.get(one.module) or names.get(one.module.rpartition(".")[0])
            for one in imports(file.read_text(), ".".join([package.name, *parts[:-1]]))
        ]
        edges[parts] = {target for target in used if target is not None and target[-1] != "__init__.py"}
    return edges


def _room(file: Parts, folder: Parts) -> str:
    """The file or folder right in `folder` that a file is or lies in; nothing where it lies elsewhere."""
    return file[len(folder)] if file[: len(folder)] == folder else ""


def _in_circles(rooms: dict[str, set[str]]) -> list[str]:
    """Rooms that import themselves through others."""
    circular = []
    for room in sorted(rooms.keys() - {""}):
        seen, waiting = set[str](), list(rooms[room] - {room, ""})
        while waiting:
            other = waiting.pop()
            seen.add(other)
            waiting += rooms.get(other, set()) - seen - {""}
        if room in seen:
            circular.append(room)
    return circular


def broken_outside(source: str, layer: str) -> list[str]:
    """The same for the source of a notebook or sample model, which use only the public nbkit."""
    found = []
    for used in imports(source):
        parts = used.module.split(".")
        if parts[0] == "nbkit" and (len(parts) > 2 or parts[-1].startswith("_")):
            found.append(f"line {used.line}: {layer} imports {used.module}, but it uses only the public nbkit")
        elif reason := _third_party(layer, parts[0]):
            found.append(f"line {used.line}: {layer} imports {used.module}, but {reason}")
    return found


def _reason(layer: str, module: str, root: Path) -> str | None:
    top, *rest = module.split(".")
    if top != "nbkit":
        return _third_party(layer, top)
    if rest[:1] == ["compat"] and layer != "compat":
        return _third_party(layer, COMPAT.get(rest[1] if rest[1:] else "", "sys"))
    target = _target(rest, root)
    if target is None:
        return None if layer == "root" else "nothing inside the package imports the package root"
    if target == layer or _rank(target) < _rank(layer):
        return None
    if _rank(target) == _rank(layer):
        return f"{layer} and {target} are siblings: none imports another"
    return f"a module imports only from layers below its own, and {target} is above {layer}"


def _third_party(layer: str, top: str) -> str | None:
    if top in THIRD_PARTY[layer] or top in sys.stdlib_module_names:
        return None
    if top in {"sample_models", "notebooks", "tests", "bench"}:
        return f"nbkit imports nothing of {top}"
    homes = [name for name, allowed in THIRD_PARTY.items() if top in allowed]
    return f"{top} is only for {', '.join(homes)}" if homes else f"{top} is no dependency that a layer may use"


def _target(parts: list[str], root: Path) -> str | None:
    """Layer that `nbkit.PARTS` lives in; None for the package root's own names."""
    if not parts:
        return None
    folder = root / "nbkit" / parts[0]
    if not folder.is_dir() and not folder.with_suffix(".py").is_file():
        return None
    return layer_of(Path(parts[0], "__init__.py") if folder.is_dir() else Path(f"{parts[0]}.py"))


def _rank(layer: str) -> int:
    return next(rank for rank, siblings in enumerate(RANKS) if layer in siblings)
