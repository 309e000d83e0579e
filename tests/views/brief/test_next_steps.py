"""What to look at next is said once in a notebook, with its magics, and always elsewhere."""

from types import SimpleNamespace

import pytest

from nbkit.views.brief import next_steps
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.next_steps import Session, in_session
from nbkit.views.statements.subjects import KERNELS, VALUES
from tests.support.fakes import small_trace, timed_trace

ALL = "Next: nbkit.opcheck (NaN), nbkit.opdiff (kernels), nbkit.opaudit (gradients), nbkit.optime (time)."


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(find_cell_magic=lambda name: name == "opcheck")
    monkeypatch.setattr(next_steps, "_SESSION", Session())
    monkeypatch.setitem(next_steps.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def shown(trace, is_notebook=True):
    with in_session(is_notebook=is_notebook):
        return brief_of(trace).not_looked_at


@pytest.mark.usefixtures("notebook")
def test_a_notebook_says_it_once_without_what_it_ran_and_by_its_magics() -> None:
    first, second = timed_trace(), small_trace()
    assert shown(first) == "Next: %%opcheck (NaN), %%opdiff (kernels), %%opaudit (gradients)."
    assert shown(second) == ""
    # The same output once more, as its widget and its HTML.
    assert shown(first) == "Next: %%opcheck (NaN), %%opdiff (kernels), %%opaudit (gradients)."
    # Who asks for the brief itself gets all of it.
    assert brief_of(second).not_looked_at == ALL


def test_the_line_stands_below_the_first_trace_that_leaves_something_to_look_at() -> None:
    session, graph, step = Session(), small_trace(verb="opcheck"), small_trace()
    check, diff = VALUES, KERNELS
    assert session.left(graph, []) == ()
    assert session.left(step, [check, diff]) == (diff,)
    assert session.left(small_trace(), [diff]) == ()


def test_elsewhere_it_is_always_said() -> None:
    assert [shown(small_trace(), is_notebook=False) for _ in range(2)] == [ALL, ALL]
