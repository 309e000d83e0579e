"""docs/findings.md has a row for each rule that nbkit can emit, with its severities and verbs; no other."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from docs.generator.findings_page import findings_page
from nbkit.findings.finding import RULES, rules_in
from nbkit.schema.findings import SEVERITIES

ROOT = Path(__file__).parents[2]
PACKAGES = [f"nbkit.findings.{name}" for name in ("dataflow", "time", "training", "waste")]


@pytest.fixture(scope="module")
def page():
    return findings_page()


def test_the_page_is_that_of_the_rules(page):
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8") == page, "run `make docs`"


def test_each_rule_has_a_row_with_its_severities_and_verbs(page):
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \| .+ \|$", page, re.MULTILINE)
    documented = {name: row[1:] for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    known = {name: (", ".join(one.severities), ", ".join(one.verbs)) for one in RULES for name in one.names}
    assert documented == known


def test_a_name_has_one_rule_and_a_rule_known_severities_and_a_condition(page):
    assert [name for name, count in Counter(name for one in RULES for name in one.names).items() if count > 1] == []
    assert {severity for one in RULES for severity in one.severities} <= {*SEVERITIES}
    assert [one.names for one in RULES if not one.condition.endswith(".")] == []


def test_only_a_rule_makes_a_finding():
    """So that each finding is on the page: other code calls Rule.finding, which knows names and severities."""
    makers = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "nbkit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding"
    }
    assert makers == {"nbkit/findings/finding.py"}


def test_rules_lie_where_the_page_looks_for_them():
    homes = {
        path.relative_to(ROOT / "nbkit").parts[0]
        for path in (ROOT / "nbkit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "nbkit.findings.finding"
        if not {"rule", "Rule"}.isdisjoint(alias.name for alias in node.names)
    }
    assert homes == {"findings", "readers", "verbs"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_order_of_rules_is_defined(package):
    ranks = [one.rank for one in rules_in(package)]
    assert len(ranks) > 3 and ranks == sorted(set(ranks))
