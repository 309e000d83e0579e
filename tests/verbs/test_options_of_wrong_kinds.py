"""Options of a wrong kind get one sentence, before anything else is looked at."""

import pytest
from IPython.core.events import EventManager, available_events

import nbkit
from nbkit.schema import MEMORY
from nbkit.views.host import outputs
from tests.support.fakes import small_trace

NO_AMOUNT = "by=['x'] is not an amount of a cost; known are flops, moved_bytes, params, saved_bytes, time_us."
CASES = {
    "count must be a whole number from 1 up, got 0.": lambda: nbkit.plot_repeats(small_trace(), count=0),
    "count must be a whole number from 1 up, got 'a'.": lambda: nbkit.plot_repeats(small_trace(), count="a"),
    "count must be a whole number from 1 up, got 3.5.": lambda: nbkit.plot_ops(small_trace(), count=3.5),
    "count must be a whole number from 1 up, got True.": lambda: nbkit.plot_modules(small_trace(), count=True),
    "width must be a whole number from 1 up, got 'a'.": lambda: nbkit.module_table_text(small_trace(), width="a"),
    "path must be a path of the file to write, got 3.": lambda: nbkit.opreport(small_trace(), path=3),
    "op_id=['x'] is not in the trace; its ops are 0 to 7.": lambda: nbkit.script_of(small_trace(), ["x"]),
    "by=['x'] is not an amount of a cost; known are flops, moved_bytes, params, saved_bytes, time_us.": lambda: (
        nbkit.plot_cost(small_trace(), by=["x"])
    ),
    "by must be a list of names, such as ['module'], got 3.5.": lambda: nbkit.held_at_peak(
        MEMORY.frame(), small_trace().ops, by=3.5
    ),
    "columns must be a name or a list of names, got 3.5.": lambda: nbkit.tensors_with_ops(small_trace(), 3.5),
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
