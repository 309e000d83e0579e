"""Progress in a kernel is one display that is updated and leaves nothing; stderr stays empty.

nbformat and nbconvert take seconds to import, so they are imported at use: every worker imports every test file.
"""

import pytest

SETUP = """\
import os, time, torch, nbkit
from nbkit import progress
%load_ext nbkit
os.environ.pop("NBKIT_PROGRESS", None)
progress.PATIENCE_S, progress.EVERY_S = 0.0, 0.02
x = torch.ones(2, 2)
"""
LONG = "%%optrace -q\nprint('first')\nfor _ in range(20):\n    x @ x\n    time.sleep(0.02)\nprint('last')"


def messages(kernel, code):
    """Returns the messages of a cell but those of its status and its input."""
    sent = []
    kernel.client.execute_interactive(code, output_hook=sent.append, timeout=60)
    return [message for message in sent if message["msg_type"] not in ("status", "execute_input")]


def cell_of(sent):
    """Returns the outputs that a front end saves."""
    from nbformat.v4 import new_code_cell, output_from_msg

    outputs, by_id = [], {}
    for message in sent:
        content = message["content"]
        shown = content.get("transient", {}).get("display_id")
        if message["msg_type"] == "update_display_data":
            by_id[shown]["data"] = content["data"]
            continue
        outputs.append(output_from_msg(message))
        by_id[shown] = outputs[-1]
    return new_code_cell(LONG, outputs=outputs)


@pytest.fixture
def long_cell(kernel):
    kernel.run(SETUP)
    yield messages(kernel, LONG)
    kernel.run("os.environ['NBKIT_PROGRESS'] = '0'")


def test_progress_is_one_display_that_is_updated(long_cell):
    kinds = [message["msg_type"] for message in long_cell]
    assert kinds.count("display_data") == 1
    assert kinds.count("update_display_data") >= 3
    assert {message["content"]["name"] for message in long_cell if message["msg_type"] == "stream"} == {"stdout"}
    texts = [message["content"]["data"].get("text/plain") for message in long_cell if "data" in message["content"]]
    assert texts[0].startswith("optrace") and any(", last aten.mm" in text for text in texts[:-1])
    assert texts[-1] is None


def test_the_saved_notebook_shows_nothing_of_it(long_cell):
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.v4.new_notebook(cells=[cell_of(long_cell)])
    nbformat.validate(notebook)
    page, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    assert "first" in page and "optrace:" not in page and "last aten" not in page
    (rest,) = [output["data"] for output in notebook.cells[0].outputs if output["output_type"] == "display_data"]
    assert rest == {}


def test_what_other_magics_print_is_not_mixed_with_it(kernel):
    kernel.run(SETUP)
    sent = messages(kernel, "%%optrace -q\n%timeit -n 5 -r 2 time.sleep(0.02)")
    printed = "".join(message["content"]["text"] for message in sent if message["msg_type"] == "stream")
    kernel.run("os.environ['NBKIT_PROGRESS'] = '0'")
    assert "optrace" not in printed and "per loop" in printed


def test_a_captured_cell_shows_no_progress(kernel):
    kernel.run(SETUP)
    sent = messages(kernel, f"%%capture\n{LONG}")
    kernel.run("os.environ['NBKIT_PROGRESS'] = '0'")
    assert sent == []
