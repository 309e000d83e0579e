"""Options made from a function's parameters and its docstring."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from torch import nn

from nbkit.magics import CELL_MAGICS, LINE_MAGICS
from nbkit.magics.line_magic import line_parser
from nbkit.verbs.options.docstrings import Doc, read
from nbkit.verbs.options.generated import Option, add_options, option_names


def verb(
    *traces: str,
    kind: Literal["sum", "mean"] = "sum",
    sample: float = 1,
    share: float = 0.25,
    count: int | None = None,
    path: Path | None = None,
    loud: bool = False,
    model: nn.Module | None = None,
    hook: Callable[[], Any] | None = None,
) -> None:
    """Does a thing.

    It does
    it well.

    Args:
        traces: what is shown. All of them.
        kind: how `it` is done at 5 %.
        sample: every N-th,
            or a share.
        share: how much of it.
        count: how many; by default all.
        path: where it goes.
        loud: say more.
        model: what runs.
        hook: what no text can name.

    Raises:
        ValueError: never.
    """


def parsed(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, verb, {})
    return vars(parser.parse_args(words))


def test_a_docstring_is_read_in_parts() -> None:
    doc = read(verb)
    assert (doc.head, doc.body, doc.raises) == ("Does a thing.", "It does\nit well.", [("ValueError", "never.")])
    assert doc.args[:3] == [
        ("traces", "what is shown. All of them."),
        ("kind", "how `it` is done at 5 %."),
        ("sample", "every N-th, or a share."),
    ]
    assert len(doc.args) == 9


def test_a_docstring_is_asked_for() -> None:
    with pytest.raises(LookupError, match="has no docstring; write one"):
        read(lambda: None)

    def bad() -> None:
        """Does.

        Args:
            no entry
        """

    with pytest.raises(LookupError, match="not of the form 'name: meaning': 'no entry'"):
        read(bad)
    bad.__doc__ = "Does."
    assert read(bad) == Doc("Does.", "", [], [])


def test_options_have_the_defaults_of_the_function() -> None:
    assert parsed() == {
        "traces": [],
        "kind": "sum",
        "sample": 1,
        "share": 0.25,
        "count": None,
        "path": None,
        "loud": False,
        "model": None,
    }
    assert option_names(verb) == ["traces", "kind", "sample", "share", "count", "path", "loud", "model"]


def test_none_as_a_default_is_told_in_words() -> None:
    def asks(*, calls: int | None = None) -> None:
        """Asks.

        Args:
            calls: which calls, from 0; all if None.
        """

    parser = argparse.ArgumentParser()
    add_options(parser, asks)
    assert parser.format_help().splitlines()[-1].split(None, 2)[2] == "which calls, from 0 (default: all)"


@pytest.mark.parametrize("name", [*CELL_MAGICS, *LINE_MAGICS])
def test_no_option_of_a_verb_speaks_of_none(name: str) -> None:
    parser = CELL_MAGICS[name].parser if name in CELL_MAGICS else line_parser(name, LINE_MAGICS[name])
    assert "None" not in parser.format_help()


def test_options_read_what_the_annotations_allow() -> None:
    options = parsed("a", "b", "--kind=mean", "--sample=4", "--share=1", "--count=-3", "--loud", "--model=net")
    assert options["traces"] == ["a", "b"]
    assert (options["kind"], options["count"], options["loud"], options["model"]) == ("mean", -3, True, "net")
    assert [options[name] for name in ("sample", "share")] == [4, 1.0]
    assert [type(options[name]) for name in ("sample", "share")] == [int, float]
    assert parsed("--sample=0.5")["sample"] == 0.5
    assert parsed("--path=a.html")["path"] == Path.cwd() / "a.html"


def test_an_option_may_be_read_in_another_way_and_under_another_name() -> None:
    parser = argparse.ArgumentParser()
    special = {
        "count": Option(read=str, metavar="N:M", help="which"),
        "path": Option(("-p", "--place")),
    }
    add_options(parser, verb, special, leave_out=["share"])
    options = vars(parser.parse_args(["--count=2:5", "-p", "a.html"]))
    assert (options["count"], options["path"]) == ("2:5", Path.cwd() / "a.html")
    assert "share" not in options
    shown = " ".join(parser.format_help().split())
    assert "--count N:M which " in shown and "-p FILE, --place FILE where it goes" in shown


@pytest.mark.parametrize("word", ["--kind=max", "--sample=many", "--count=1.5", "--share=x"])
def test_other_values_are_refused(word: str) -> None:
    with pytest.raises(argparse.ArgumentError):
        parsed(word)


def test_help_has_meanings_metavars_and_defaults() -> None:
    parser = argparse.ArgumentParser(prog="p", formatter_class=lambda prog: argparse.HelpFormatter(prog, width=200))
    add_options(parser, verb, {})
    lines = [" ".join(line.split()) for line in parser.format_help().splitlines()]
    assert lines[lines.index("positional arguments:") + 1] == "TRACE what is shown"
    assert [line for line in lines if line.startswith("--")] == [
        "--kind {sum,mean} how it is done at 5 % (default: sum)",
        "--sample N every N-th, or a share (default: 1)",
        "--share X how much of it (default: 0.25)",
        "--count N how many; by default all",
        "--path FILE where it goes",
        "--loud say more",
        "--model NAME what runs",
    ]
