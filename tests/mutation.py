"""Breaks one line in each of some modules of nbkit, in a copy of the last commit, and says which tests see it.

`python -m tests.mutation --count 20 --seed 1` runs for each the tests near the module first, then the rest of the fast
tier, and with `--full` every test. What nothing sees is listed, for a reader to judge whether it changes anything.

A line is broken by leaving out its statement (statement deletion, SDL, of the literature on mutation tests), or what it
returns. `--kind expressions` is finer: it changes one operator, condition or number. More of that changes nothing.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.layer_rules import imports

ROOT = Path(__file__).parents[1]
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
FLAGS = ["-q", "-x", "-p", "no:cacheprovider", "--timeout=120", "--no-header", "--color=no"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - |$)", re.MULTILINE)
TIME_LIMIT = 1200


@dataclass(frozen=True)
class Mutation:
    """A span of a module's source and what stands there instead."""

    module: Path
    node: ast.expr | ast.stmt
    instead: str

    def applied(self, source: str) -> str:
        lines = source.encode().splitlines(keepends=True)
        start = sum(map(len, lines[: self.node.lineno - 1])) + self.node.col_offset
        end = sum(map(len, lines[: self.node.end_lineno - 1])) + self.node.end_col_offset
        data = source.encode()
        return (data[:start] + self.instead.encode() + data[end:]).decode()

    def __str__(self) -> str:
        before = " ".join(ast.unparse(self.node).split())
        return f"{self.module}:{self.node.lineno}: {before[:80]}  ->  {' '.join(self.instead.split())[:80]}"


def mutations(module: Path, source: str, kind: str = "lines") -> Iterator[Mutation]:
    """Every mutation of the bodies of a module's functions that parses."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in _inside(statement):
                    if (instead := KINDS[kind](node)) is not None:
                        yield Mutation(module, node, instead)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, no parts of f-strings (their places are wrong) or of errors' sentences.

    Nor what zip(strict=True) asks of lists that are equally long by construction.
    """
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.FunctionDef | ast.Assert):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    yield node
    for name, part in ast.iter_fields(node):
        if name not in ("annotation", "returns", "type_comment"):
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, ast.AST):
                    yield from _inside(child)


def _left_out(node: ast.AST) -> str | None:
    """What stands in a statement's place where it is left out; None of what holds others, and of what does nothing."""
    match node:
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
            return "return None"
        case ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
            return None
        case (
            ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Delete() | ast.Continue() | ast.Break()
        ):
            return "pass"
    return None


def _changed(node: ast.AST) -> str | None:
    """What stands in a node's place, with one operator, condition or number changed; None where there is none."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in OPPOSITES:
            return _text(ast.Compare(left, [OPPOSITES[type(operator)]()], [right]))
        case ast.BoolOp(op=operator, values=values):
            return _text(ast.BoolOp(OPPOSITES[type(operator)](), values))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPPOSITES:
            return _text(ast.BinOp(left, OPPOSITES[type(operator)](), right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _text(operand)
        case ast.Constant(value=bool() as value):
            return str(not value)
        case ast.Constant(value=int() | float() as value):
            return repr(value + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
            return "return None"
        case ast.Expr(value=ast.Call()):
            return "pass"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _text(ast.IfExp(test, orelse, body))
    return None


KINDS: dict[str, Callable[[ast.AST], str | None]] = {"lines": _left_out, "expressions": _changed}


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def chosen(count: int | None, seed: int, only: list[str], kind: str = "lines") -> list[Mutation]:
    """One mutation in each of `count` modules that have any, or in each of those named; more where `count` is more."""
    draw = random.Random(seed)
    listed = subprocess.run(["git", "ls-files", "nbkit/*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(name) for name in only or sorted(listed.stdout.split())]
    draw.shuffle(paths)
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}
    options = {path: several for path in paths if (several := list(mutations(path, sources[path], kind)))}
    count = count or len(options)
    found: list[Mutation] = []
    while len(found) < count and any(options.values()):
        for path in [path for path, several in options.items() if several][: count - len(found)]:
            found.append(options[path].pop(draw.randrange(len(options[path]))))
            ast.parse(found[-1].applied(sources[path]))
    return found


def near(module: Path, root: Path) -> list[Path]:
    """Test files that most likely see a module: its own, those of what imports it, those beside, below and above."""
    tests, package = root / "tests", root / "nbkit"
    files = [path for path in sorted(tests.rglob("test_*.py")) if "browser" not in path.parts]
    mirrored = tests.joinpath(*module.parts[1:-1])
    users = [path.relative_to(root) for path in sorted(package.rglob("*.py")) if _uses(path, module)]
    own = [tests.joinpath(*path.parts[1:-1], f"test_{path.stem}.py") for path in (module, *users)]
    importing = [path for path in files if _uses(path, module)]
    beside = [path for path in files if path.parent == mirrored]
    below = [path for path in files if mirrored in path.parents and mirrored != tests]
    above = [path for path in files if path.parent == mirrored.parent != tests]
    return [path for path in dict.fromkeys([own[0], *importing, *own[1:], *beside, *below, *above]) if path in files]


@cache
def _imported(path: Path) -> frozenset[str]:
    return frozenset(used.module for used in imports(path.read_text(encoding="utf-8")))


def _uses(path: Path, module: Path) -> bool:
    name = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    return any(used == name or used.startswith(f"{name}.") for used in _imported(path))


@dataclass(frozen=True)
class Copy:
    """A clone in which modules are broken, one at a time."""

    root: Path
    workers: int
    failing: list[str] = field(default_factory=list)  # tests that fail without any mutation, too: they judge none

    def first_failure(self, *words: str) -> str | None:
        """The first test that fails; None if all pass."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            *FLAGS,
            "-n",
            str(self.workers),
            "--dist",
            "loadfile",
            "--no-loadscope-reorder",
            *(f"--deselect={test}" for test in self.failing),
            *words,
        ]
        environment = os.environ | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("CI", None)
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
        if done.returncode in (0, 5):  # all passed, or there was none
            return None
        match = FAILED.search(done.stdout)
        return match.group(1) if match else f"a run that ends with status {done.returncode}"

    def judged(self, mutation: Mutation, *, is_full: bool) -> tuple[str, str | None]:
        """The tier that sees a mutation, and by which test."""
        close = [str(file.relative_to(self.root)) for file in near(mutation.module, self.root)]
        rest = [f"--ignore={file}" for file in close]
        tiers = {"fast, near": ("-m", "not full", *close)} if close else {}
        tiers |= {"fast": ("-m", "not full", *rest)} | ({"full": ("-m", "full")} if is_full else {})
        try:
            for tier, words in tiers.items():
                if failure := self.failure_of(mutation, *words):
                    return tier, failure
            return "nothing", None
        except subprocess.TimeoutExpired:
            return "unknown", f"no test failed in {TIME_LIMIT} s, and the run has not ended"

    def failure_of(self, mutation: Mutation, *words: str) -> str | None:
        """The first test that fails with the mutation, and passes without."""
        path = self.root / mutation.module
        source = path.read_text(encoding="utf-8")
        while True:
            path.write_text(mutation.applied(source), encoding="utf-8")
            try:
                failure = self.first_failure(*words)
            finally:
                path.write_text(source, encoding="utf-8")
            test = failure.partition("[")[0] if failure else ""
            if "::" not in test or test in self.failing or not self.first_failure(test):
                return failure
            self.failing.append(test)


def copied(folder: Path) -> Path:
    """A clone below `folder`, with what the checkout has beside it and ignores."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder / "clone")], check=True)
    for place, target in ((folder / "shared", ROOT.parent / "shared"), (folder / "clone/.venv", ROOT / ".venv")):
        if target.exists():
            place.symlink_to(target)
    if (modules := ROOT / "widgets/node_modules").exists() and shutil.which("node"):
        (folder / "clone/widgets/node_modules").symlink_to(modules)
    return folder / "clone"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", help="modules to break, such as nbkit/errors.py; without, random ones")
    parser.add_argument("--count", type=int, help="without, 20, or one in each of the modules named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, default="lines", help="what is broken: whole lines, or parts of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--full", action="store_true", help="what the fast tier does not see, show to every test")
    options = parser.parse_args(words)
    tally: dict[str, int] = {}
    drawn = chosen(options.count or (None if options.modules else 20), options.seed, options.modules, options.kind)
    with tempfile.TemporaryDirectory(prefix="nbkit-mutations-") as folder:
        copy = Copy(copied(Path(folder)), options.workers)
        for mutation in drawn:
            tier, test = copy.judged(mutation, is_full=options.full)
            tally[tier] = tally.get(tier, 0) + 1
            print(f"{tier:<11} {mutation}\n{'':<11} {test or 'judge it: does it change anything?'}", flush=True)
    print(", ".join(f"{number} by {tier}" for tier, number in tally.items()))
    for test in copy.failing:
        print(f"{test} fails without any mutation, too, and judged none: mend it.")
    fast = sum(number for tier, number in tally.items() if tier.startswith("fast"))
    return int(bool(copy.failing) or fast < 0.9 * sum(tally.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
