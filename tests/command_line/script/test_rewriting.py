"""The step of a script: which code it is, and that its lines stay where they were."""

import ast
import builtins
import traceback
from contextlib import contextmanager
from pathlib import Path

import pytest

from nbkit.command_line.script.rewriting import NAME, functions, with_step
from nbkit.command_line.script.target import Target, read_target
from nbkit.errors import OptionError

SOURCE = '''\
def train():
    """Of the step."""
    for number in range(3):
        if number == 1:
            continue
        while True:
            met.append(number)
            break
    return met


class Trainer:
    def step(self):
        def inner():
            raise ValueError("no")
        inner()
'''


def run(target: Target, code: str) -> tuple[dict, list[str]]:
    """Names of the rewritten module after `code`, and the beginnings and ends of its steps."""
    events = []

    @contextmanager
    def step():
        events.append("begin")
        try:
            yield
        finally:
            events.append("end")

    names = {"met": []}
    setattr(builtins, NAME, step)
    try:
        exec(compile(with_step(ast.parse(SOURCE + code), target, "s.py"), "s.py", "exec"), names)
    finally:
        delattr(builtins, NAME)
    return names, events


@pytest.mark.parametrize(
    ("target", "steps"),
    [(Target("", name="train"), 1), (Target("", line=3), 3), (Target("", line=4), 3), (Target("", line=7), 2)],
    ids=["function", "loop", "line in a loop", "inner loop"],
)
def test_calls_and_passes_are_steps(target, steps):
    names, events = run(target, "train()")
    assert names["met"] == [0, 2]
    assert events == ["begin", "end"] * steps
    assert names["train"].__doc__ == "Of the step."


def test_an_error_has_the_lines_of_the_bare_script():
    places = {}
    for kind, target in (("bare", Target("", line=3)), ("step", Target("", name="Trainer.step"))):
        with pytest.raises(ValueError) as raised:
            run(target, "Trainer().step()")
        places[kind] = [(one.lineno, one.name) for one in traceback.extract_tb(raised.tb) if one.filename == "s.py"]
    assert places["step"] == places["bare"] == [(17, "<module>"), (16, "step"), (15, "inner")]


def test_functions_have_qualified_names():
    assert [name for name, _ in functions(ast.parse(SOURCE))] == ["train", "Trainer.step", "Trainer.step.inner"]


@pytest.mark.parametrize("before", ["if met == []:", "try:\n    later\nexcept NameError:", "with open(__file__):"])
def test_a_function_that_a_statement_defines_is_a_step(before):
    target = Target("", name="Late.later")
    late = "    class Late:\n        def later(self):\n            met.append('later')\n"
    names, events = run(target, f"__file__ = {__file__!r}\n{before}\n{late}Late().later()\n")
    assert (names["met"], events) == (["later"], ["begin", "end"])


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("x = 1", Target("", name="f"), "it defines no function; name a loop by its line"),
        ("x = 1", Target("", line=1), "s.py has no loop, so none is at line 1"),
        ("@torch.compile\ndef f(): pass", Target("", name="f"), "f is compiled as a whole; name a function that calls"),
        ("async def f():\n    yield 1", Target("", name="f"), "f is a generator"),
    ],
)
def test_what_cannot_be_a_step_is_said(source, target, sentence):
    with pytest.raises(OptionError, match=sentence):
        with_step(ast.parse(source), target, "s.py")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("step", Target("step", name="step")),
        ("Trainer.step", Target("Trainer.step", name="Trainer.step")),
        ("a.b:C.d", Target("a.b:C.d", name="C.d", module="a.b")),
        (":12", Target(":12", line=12)),
    ],
)
def test_the_forms_of_a_target(text, target):
    assert read_target(text, Path("train.py")) == target
