"""Filters: every verb that has them lists them, and refuses others."""

import inspect

import pytest

import nbkit
from nbkit.magics import CELL_MAGICS
from nbkit.verbs.options.docstrings import read

OPS = ["ops", "exclude_ops", "modules", "exclude_modules"]
CALLS = [*OPS, "phases", "calls"]
FILTERS = {
    "optrace": OPS,
    "opdiff": [*OPS, "phases"],
    **dict.fromkeys(["opbisect", "opcapture", "opcast", "opfallback", "opstable"], CALLS),
}


@pytest.mark.parametrize("verb", FILTERS)
def test_help_and_signature_of_a_verb_list_its_filters(verb):
    function = getattr(nbkit, verb)
    parameters = inspect.signature(function).parameters
    assert [name for name in parameters if name in CALLS] == FILTERS[verb]
    assert {parameters[name].default for name in FILTERS[verb]} == {None}
    assert [name for name, _ in read(function).args if name in CALLS] == FILTERS[verb]
    assert "filters" not in inspect.getdoc(function).partition("Args:")[2].split(":")


def test_what_is_no_filter_is_refused_as_python_does():
    for wrong in (lambda: nbkit.opcast("float32", op="mm"), lambda: nbkit.opbisect(print, print, op="mm")):
        with pytest.raises(TypeError, match="unexpected keyword argument 'op'"):
            wrong()
    with pytest.raises(TypeError, match="unexpected keyword argument 'calls'"):
        nbkit.opdiff(calls=0)


@pytest.mark.parametrize("verb", ["opcapture", "opcast", "opfallback", "opstable"])
def test_a_line_names_several_calls(verb):
    needed = {"opcapture": "--folder calls", "opcast": "--dtype float32"}
    assert CELL_MAGICS[verb].parser.parse_line(f"{needed.get(verb, '')} --calls 0,2:5").calls == "0,2:5"
