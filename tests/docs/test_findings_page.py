"""docs/findings.md has a row for each rule that nbkit can emit, with the severities and verbs of the code; no other."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from nbkit.findings import bad_values
from nbkit.findings.steps.anomalies import NOT_FINITE_OF
from nbkit.numerics.noise_ratio import HARMLESS, STATUSES

ROOT = Path(__file__).parents[2]
FOLDERS = ("findings", "readers", "verbs/alignment")
VERB_OF = {
    "findings/bad_values": "opcheck",
    "findings/culprits": "opbisect",
    "findings/dataflow": "opaudit",
    "findings/differences": "opdiff",
    "findings/replays": "opreplay",
    "findings/stability": "opstable",
    "findings/steps": "audit",
    "findings/time": "optime",
    "findings/training": "opaudit",
    "findings/waste": "opaudit",
    "readers/snapshot": "load",
    "verbs/alignment": "opalign",
}
STATUS = [status for status in STATUSES if status not in HARMLESS]
# What is read of a frame, by the file and the expression: its values, which other tables of the code have, by severity.
OF_FRAMES = {
    ("findings/bad_values", "first['kind']"): {
        kind: {bad_values.SEVERITIES.get(kind, "error")} for kind in bad_values.ADVICE
    },
    ("findings/differences", "worst['status']"): {
        status: {"warning" if status == "failed" else "error"} for status in STATUS
    },
    ("findings/replays", "first['status']"): {status: {"error"} for status in STATUS},
    ("findings/steps/anomalies", "kind"): {kind: {"error"} for kind in NOT_FINITE_OF},
    ("findings/dataflow/rules", "first.rule"): {},  # a Found of the files beside it
}


class Module:
    """A file of the package, and what its names can stand for."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(ROOT / "nbkit").with_suffix("").as_posix()
        self.tree = ast.parse(path.read_text())
        self.inside = {
            id(node): function
            for function in ast.walk(self.tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
        }

    def calls(self, *names: str) -> Iterator[ast.Call]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield node

    def strings(self, node: ast.expr | None, inside: ast.AST) -> set[str]:
        """The texts that an expression can be, as far as its file tells."""
        if isinstance(node, ast.Constant):
            return {node.value} if isinstance(node.value, str) else set()
        if isinstance(node, ast.IfExp):
            return self.strings(node.body, inside) | self.strings(node.orelse, inside)
        if not isinstance(node, ast.Name):
            return set()
        if isinstance(value := getattr(import_module(f"nbkit.{self.name.replace('/', '.')}"), node.id, None), str):
            return {value}
        function = self.inside[id(inside)]
        return self.bound(node.id, function) | self.given(node.id, function)

    def bound(self, name: str, function: ast.FunctionDef) -> set[str]:
        """What assignments and loops of a function bind a name to."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                pairs.append((node.target, node.value))
            elif isinstance(node, ast.Assign):
                pairs.append((node.targets[0], node.value))
            elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
                pairs += [(node.target, value) for value in node.iter.elts]
        for target, value in tuple(pairs):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=True)
        values = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
        return {text for value in values for text in self.strings(value, function.body[0])}

    def given(self, name: str, function: ast.FunctionDef) -> set[str]:
        """What the calls of a function in its file give for a parameter."""
        names = [one.arg for one in function.args.args]
        if name not in names:
            return set()
        place = names.index(name)
        return {
            text
            for call in self.calls(function.name)
            if len(call.args) > place
            for text in self.strings(call.args[place], call)
        }


def emitted() -> dict[str, tuple[set[str], set[str]]]:
    """The severities and verbs of each rule, by the calls of Finding and Found."""
    rules: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for path in [path for folder in FOLDERS for path in (ROOT / "nbkit" / folder).rglob("*.py")]:
        module = Module(path)
        for call in module.calls("Finding", "Found"):
            for rule, severities in of_call(module, call).items():
                rules[rule][0].update(severities)
                rules[rule][1].add(verb_of(module))
    return rules


def of_call(module: Module, call: ast.Call) -> dict[str, set[str]]:
    """The rules of a call of Finding or Found, each with its severities."""
    words = {word.arg: word.value for word in call.keywords}
    rule, severity = (
        call.args[at] if len(call.args) > at else words[name] for at, name in enumerate(("rule", "severity"))
    )
    if (key := (module.name, ast.unparse(rule))) in OF_FRAMES:
        return OF_FRAMES[key]
    rules = module.strings(rule, call)
    assert rules, f"nbkit/{module.name}.py:{call.lineno}: which rule is {ast.unparse(rule)}?"
    return {name: module.strings(severity, call) for name in rules}


def verb_of(module: Module) -> str:
    return next(verb for start, verb in VERB_OF.items() if module.name.startswith(start))


def documented() -> dict[str, tuple[set[str], set[str]]]:
    text = (ROOT / "docs" / "findings.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \| .* \|$", text, re.MULTILINE)
    return {
        name: (set(severities.split(", ")), set(verbs.split(", ")))
        for names, severities, verbs in rows
        for name in re.findall(r"`(\w+)`", names)
    }


@pytest.fixture(scope="module")
def rules():
    return emitted()


def test_the_page_has_each_rule_and_no_other(rules):
    assert sorted(documented()) == sorted(rules)


def test_severities_and_verbs_are_those_of_the_code(rules):
    assert {name: row for name, row in documented().items() if row != rules[name]} == {}
