"""Filters: every verb that has them lists them, and refuses others."""

import inspect

import pytest
import torch

import nbkit
from nbkit.magics import CELL_MAGICS
from nbkit.verbs.options.docstrings import read

OPS = ["ops", "exclude_ops", "modules", "exclude_modules", "backward"]
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


@pytest.mark.parametrize("verb", ["optrace", "opdiff", "opcapture", "opfallback"])
def test_a_line_asks_for_the_backward_calls_of_an_op(verb):
    needed = {"opcapture": "--folder calls"}
    options = CELL_MAGICS[verb].parser.parse_line(f"{needed.get(verb, '')} --ops sort --backward")
    assert options.backward is True
    assert CELL_MAGICS[verb].parser.parse_line(needed.get(verb, "")).backward is False


def test_backward_that_cannot_be_is_refused():
    with pytest.raises(nbkit.OptionError, match="backward must be True or False, got 3"):
        nbkit.optrace(ops="sort", backward=3)
    with pytest.raises(nbkit.OptionError, match="phases='forward' leaves them out; leave phases out, or add backward"):
        nbkit.opcapture("calls", ops="sort", phases="forward", backward=True)
    with pytest.raises(nbkit.OptionError, match="compares modules, not ops"):
        nbkit.opdiff(level="module", backward=True)


def step():
    torch.randn(3).exp().sin()


def test_the_environment_chooses_where_the_script_does_not(monkeypatch, tmp_path):
    monkeypatch.setenv("NBKIT_OPS", "exp")
    with nbkit.optrace() as trace:
        step()
    assert trace.ops["op"].tolist() == ["torch.Tensor.exp", "aten.exp.default"]
    assert trace.meta["notes"] == ["The environment chose the calls: NBKIT_OPS=exp."]
    with nbkit.optrace(ops="sin") as trace:  # what the script says holds
        step()
    assert trace.ops["op"].tolist() == ["torch.Tensor.sin", "aten.sin.default"]
    assert trace.meta["notes"] == []
    monkeypatch.setenv("NBKIT_OPCAPTURE_OPS", "sin")  # of one verb, before that of all
    with nbkit.opcapture(tmp_path / "calls") as trace:
        step()
    assert trace.captures["op"].tolist() == ["aten.sin.default"]
    with nbkit.opfallback() as trace:
        step()
    assert trace.replaced["op"].tolist() == ["aten.exp.default"]


def test_each_filter_has_a_variable(monkeypatch):
    monkeypatch.setenv("NBKIT_EXCLUDE_OPS", "exp, randn")
    monkeypatch.setenv("NBKIT_CALLS", "0")
    monkeypatch.setenv("NBKIT_PHASES", "forward,other")
    monkeypatch.setenv("NBKIT_MODULES", "")  # as if it were not there
    with nbkit.opfallback() as trace:
        step(), step()
    assert trace.replaced["op"].tolist() == ["aten.sin.default"]
    variables = "NBKIT_EXCLUDE_OPS=exp, randn, NBKIT_PHASES=forward,other, NBKIT_CALLS=0"
    assert trace.meta["notes"] == [f"The environment chose the calls: {variables}."]


def test_backward_in_the_environment(monkeypatch):
    x = torch.randn(3, requires_grad=True)
    monkeypatch.setenv("NBKIT_OPS", "sigmoid")
    for text, count in (("1", 2), ("0", 1)):
        monkeypatch.setenv("NBKIT_BACKWARD", text)
        with nbkit.opfallback() as trace:
            x.sigmoid().sum().backward()
        assert len(trace.replaced) == count
    monkeypatch.setenv("NBKIT_BACKWARD", "yes")
    with pytest.raises(nbkit.OptionError, match=r"NBKIT_BACKWARD='yes' is neither 0 nor 1; set 1 for the calls"):
        nbkit.opfallback()


def test_a_variable_that_cannot_be_used_is_named(monkeypatch):
    monkeypatch.setenv("NBKIT_PHASES", "foward")
    said = r"phases='foward' is not known; .* or 'backward'\? The environment has NBKIT_PHASES=foward\."
    with pytest.raises(nbkit.OptionError, match=said):
        nbkit.opdiff()
    monkeypatch.setenv("NBKIT_OPS", "re:(")
    with pytest.raises(nbkit.PatternError, match=r"The environment has NBKIT_OPS=re:\(\."):
        nbkit.optrace()


def test_a_line_leaves_the_choice_to_the_environment(monkeypatch):
    monkeypatch.setenv("NBKIT_OPS", "exp")
    magic = CELL_MAGICS["optrace"]
    with magic.recorder.record(magic.parser.parse_line("")) as trace:
        step()
    assert trace.ops["op"].tolist() == ["torch.Tensor.exp", "aten.exp.default"]


def test_call_0_of_the_script_holds(monkeypatch):
    monkeypatch.setenv("NBKIT_CALLS", "1")
    x = torch.ones(3)
    with nbkit.opfallback(ops="exp", calls=0) as trace:
        x.exp(), x.exp()
    assert trace.replaced["call"].tolist() == [0]
