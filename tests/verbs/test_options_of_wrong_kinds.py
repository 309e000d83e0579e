"""Options of a wrong kind get one sentence, before anything else is looked at."""

import pytest
from IPython.core.events import EventManager, available_events

import nbkit
from nbkit.views.host import outputs
from tests.support.fakes import small_trace

CASES = {
    "count must be a whole number from 1 up, got 0.": lambda: nbkit.plot_repeats(small_trace(), count=0),
    "count must be a whole number from 1 up, got 'a'.": lambda: nbkit.plot_repeats(small_trace(), count="a"),
    "width must be a whole number from 1 up, got 'a'.": lambda: nbkit.module_table_text(small_trace(), width="a"),
    "path must be a path of the file to write, got 3.": lambda: nbkit.opreport(small_trace(), path=3),
    "memory must be True or False, got 'x'.": lambda: nbkit.optime(memory="x"),
}


@pytest.mark.parametrize("sentence", CASES)
def test_the_sentence_names_option_kind_and_value(sentence):
    with pytest.raises(nbkit.OptionError) as error:
        CASES[sentence]()
    assert str(error.value) == sentence


def test_what_ends_widgets_with_their_cells_is_taken_out():
    events = EventManager(None, available_events)
    events.register("pre_run_cell", outputs._cell_begins)
    outputs.forget_cells(events)
    outputs.forget_cells(events)
    assert not events.callbacks["pre_run_cell"]
