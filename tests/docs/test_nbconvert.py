"""What troubleshooting.md says of nbconvert: a page has the static table, unless saved state of widgets hides it."""

import pytest

from tests.support.executed import notebook_of, page_of

WIDGET_VIEW, WIDGET_STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
SHOWN = {WIDGET_VIEW: {"version_major": 2, "model_id": "a1"}, "text/html": "<table><td>aten.mm</td></table>"}
STATE = {"a1": {"model_name": "AnyModel", "model_module": "anywidget", "state": {}}}


def converted(state: dict, *, is_clearing: bool) -> str:
    import nbformat

    notebook = notebook_of(["trace"])
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", SHOWN)]
    if state:
        notebook.metadata["widgets"] = {WIDGET_STATE: {"version_major": 2, "version_minor": 0, "state": state}}
    return page_of(notebook, ClearMetadataPreprocessor={"enabled": is_clearing})


@pytest.mark.parametrize(
    ("state", "is_clearing", "is_shown"), [({}, False, True), (STATE, False, False), (STATE, True, True)]
)
def test_the_static_table_is_in_the_page(state, is_clearing, is_shown):
    assert ("<td>aten.mm</td>" in converted(state, is_clearing=is_clearing)) == is_shown
