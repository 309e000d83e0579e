"""What the names of a notebook stand for, for line magics; a shell of IPython is its names and what hides some."""

from types import SimpleNamespace
from typing import Any

import pytest

from nbkit.errors import NbkitError
from nbkit.verbs.notebook import Notebook
from tests.support.fakes import small_trace


def notebook(**names: Any) -> Notebook:
    names |= {"In": [], "_": 1, "exit": 2}
    return Notebook(SimpleNamespace(user_ns=names, user_ns_hidden={"In": 0, "exit": 0}, push=names.update))


def test_a_trace_is_found_by_its_name() -> None:
    trace = small_trace()
    assert notebook(before=trace, other=3).trace("before") is trace


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"before": small_trace()}, "there is no 'befor'; did you mean 'before'?"),
        ({"befor": 3, "before": small_trace()}, "befor is no trace but a int; did you mean 'before'?"),
        ({"befor": 3}, "befor is no trace but a int; no trace is there yet: %%optrace -o NAME makes one."),
        ({}, "there is no 'befor'; no trace is there yet: %%optrace -o NAME makes one."),
    ],
)
def test_what_is_no_trace_is_said_with_the_traces_there_are(names: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NbkitError) as error:
        notebook(**names).trace("befor")
    assert str(error.value).startswith(sentence)


def test_a_trace_may_be_given_by_the_path_of_its_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = small_trace()
    trace.save(tmp_path / "saved")
    monkeypatch.chdir(tmp_path)
    assert notebook(before=trace).trace_or_folder("before") is trace
    for path in ("saved", "./absent", "../no such folder"):
        assert notebook(before=trace).trace_or_folder(path) == path
    with pytest.raises(NbkitError, match="there is no 'save'; did you mean 'saved'"):
        notebook(saved=trace).trace_or_folder("save")


def test_a_value_is_a_name_or_an_attribute_of_one() -> None:
    model = SimpleNamespace(layers=SimpleNamespace(first=7))
    assert notebook(model=model).value("model") is model
    assert notebook(model=model).value("model.layers.first") == 7
    assert notebook(model=model).value("model.layer.first") is None
    assert notebook(model=model).value("modle") is None


def test_names_are_those_of_the_user() -> None:
    assert notebook(x=1, _hidden=2, y=3).names() == ["x", "y"]


def test_a_value_with_a_line_before_its_name_is_not_pushed() -> None:
    names: dict[str, Any] = {}
    pushed: dict[str, Any] = {}
    Notebook(SimpleNamespace(user_ns=names, push=pushed.update)).store("_optrace", 1)
    Notebook(SimpleNamespace(user_ns=names, push=pushed.update)).store("mine", 2)
    assert (names, pushed) == ({"_optrace": 1}, {"mine": 2})
