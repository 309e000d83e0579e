"""A step that was called is called again with what it began with, or it is said why it cannot be."""

import sys

import pytest

from nbkit.command_line.script.called import StepCall
from nbkit.errors import OptionError

LOOPS = """\
def train(take, seen):
    for batch in (1, 2):
        take()
        seen.append(batch)


def found(take, seen):
    for batch in (1, 2):
        take()
        return batch
"""


def calls_of(function, *arguments, line=None):
    """The calls of a function, one for each time that it asks for one."""
    found = []
    function(lambda: found.append(StepCall(sys._getframe(1), len(found), line)), *arguments)
    return found


def test_a_function_is_called_again_with_its_arguments():
    seen, factor = [], 2

    def step(take, x, *more, by=1, **named):
        take()
        seen.append((x * factor, more, by, named))

    (call,) = calls_of(step, 3, 4, 5)
    seen.clear()
    call.values["take"] = lambda: None
    call.run()
    assert seen == [(6, (4, 5), 1, {})]


@pytest.fixture
def loops(tmp_path):
    """The functions of a file, by name."""
    path = tmp_path / "loops.py"
    path.write_text(LOOPS)
    names: dict = {}
    exec(compile(LOOPS, str(path), "exec"), names)
    return names


def test_the_body_of_a_loop_runs_again_with_the_names_that_it_began_with(loops):
    seen = []
    first, second = calls_of(loops["train"], seen, line=2)
    assert seen == [1, 2]
    for call in (second, first):
        call.values["take"] = lambda: None
        call.run()
    assert seen == [1, 2, 2, 1]


def test_a_body_that_leaves_its_function_is_refused(loops):
    (call,) = calls_of(loops["found"], [], line=8)
    with pytest.raises(OptionError, match="the body of the loop at line 8 returns or awaits"):
        call.run()


def test_an_async_function_is_refused():
    async def step(take):
        take()

    def begin(take):
        with pytest.raises(StopIteration):
            step(take).send(None)

    (call,) = calls_of(begin)
    with pytest.raises(OptionError, match="step is an async function"):
        call.run()
