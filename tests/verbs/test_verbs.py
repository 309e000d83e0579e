"""The verbs' options: the magic and the command line have the same, and every one reaches what records."""

from types import SimpleNamespace

import pytest

from nbkit.command_line.run_options import RunParser
from nbkit.findings.finding import Finding, findings_frame
from nbkit.magics import CELL_MAGICS
from nbkit.magics.line_magic import line_parser
from nbkit.trace.trace import Trace
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.registry import RECORDERS, VERBS, has_findings
from tests.support.costs import layers, with_times
from tests.support.fakes import small_trace
from tests.views.alignment.makers import aligned_trace


def own_options(name: str, parser) -> set[str]:
    """Options behind those that all verbs have."""
    every = set.intersection(*(set(RunParser(verb).long_options()) for verb in RECORDERS))
    return set(parser.long_options()) - every - {"--save", "--output"} | {"--name"}


@pytest.mark.parametrize("name", RECORDERS)
def test_the_magic_has_the_options_of_the_command_line(name):
    assert own_options(name, CELL_MAGICS[name].parser) == own_options(name, RunParser(name))


def test_every_magic_that_records_is_a_verb():
    assert list(RECORDERS) == list(CELL_MAGICS)


@pytest.mark.parametrize("name", RECORDERS)
def test_what_records_is_made_from_the_options(tmp_path, name):
    # Options that a verb does not do without.
    needed = {"opcapture": f"--folder {tmp_path / 'calls'}", "opcast": "--dtype float32"}
    with RECORDERS[name].record(CELL_MAGICS[name].parser.parse_line(f"--name mine {needed.get(name, '')}")) as trace:
        pass
    assert (trace.meta["verb"], trace.meta["name"]) == (name, "mine")


@pytest.mark.parametrize(("severities", "answer"), [([], False), (["hint"], False), (["hint", "warning"], True)])
def test_a_hint_is_no_fault_of_the_step(severities, answer):
    findings = [Finding("a rule", severity, "it is so", "do this") for severity in severities]
    assert has_findings(Trace({"findings": findings_frame(findings)})) is answer
    assert not has_findings(small_trace())


LINES = {verb.name: line_parser(verb.name, verb.line) for verb in VERBS.values() if verb.line is not None}
MAGICS = {**{name: magic.parser for name, magic in CELL_MAGICS.items()}, **LINES}


@pytest.mark.parametrize("name", MAGICS)
def test_the_help_of_a_magic_is_short_and_fits_a_terminal(name):
    assert max(map(len, MAGICS[name].format_help().splitlines())) <= 80
    assert [action.dest for action in MAGICS[name]._actions if len(action.help) > 150] == []


def test_a_report_of_costs_draws_bytes_and_with_times_the_roofline():
    titles = [
        [
            axes.get_title(loc="left").split(":")[0]
            for figure in VERBS["opcost"].view.charts(trace)
            for axes in figure.axes
        ]
        for trace in (layers(), with_times(layers()))
    ]
    moved = "Bytes moved by module and op"
    assert titles == [[moved], [moved, "Roofline of the predicted step"]]


@pytest.mark.parametrize(
    ("file", "link"),
    [("a & b.html", '<a href="a%20%26%20b.html" target="_blank">a &amp; b.html</a>'), ("../above.html", None)],
)
def test_a_report_is_told_with_a_link_if_it_is_below_the_notebook(tmp_path, monkeypatch, file, link):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    notebook = Notebook(SimpleNamespace(user_ns={"first": aligned_trace()}))
    shown = VERBS["opreport"].line.run(LINES["opreport"].parse_line(f"first -o '{file}'"), notebook)
    told, _, size = shown.pop("text/plain").partition(": ")
    assert told == file and size.startswith("1 trace, ") and size.endswith("KiB")
    assert shown == ({} if link is None else {"text/html": f"{link}: {size}"})
