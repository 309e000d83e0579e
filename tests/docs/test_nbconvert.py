"""What troubleshooting.md says of nbconvert: a page has the static table, unless saved state of widgets hides it."""

import nbformat
import pytest
from nbconvert import HTMLExporter
from traitlets.config import Config

WIDGET_VIEW, WIDGET_STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
SHOWN = {WIDGET_VIEW: {"version_major": 2, "model_id": "a1"}, "text/html": "<table><td>aten.mm</td></table>"}
STATE = {"a1": {"model_name": "AnyModel", "model_module": "anywidget", "state": {}}}


def converted(state: dict, *, is_clearing: bool) -> str:
    output = nbformat.v4.new_output("display_data", SHOWN)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("trace", outputs=[output])])
    if state:
        notebook.metadata["widgets"] = {WIDGET_STATE: {"version_major": 2, "version_minor": 0, "state": state}}
    config = Config(ClearMetadataPreprocessor={"enabled": is_clearing})
    return HTMLExporter(config=config).from_notebook_node(notebook)[0]


@pytest.mark.parametrize(
    ("state", "is_clearing", "is_shown"), [({}, False, True), (STATE, False, False), (STATE, True, True)]
)
def test_the_static_table_is_in_the_page(state, is_clearing, is_shown):
    assert ("<td>aten.mm</td>" in converted(state, is_clearing=is_clearing)) == is_shown
