"""What troubleshooting.md says of nbconvert: a page has the static table, also beside saved state of widgets."""

import pytest

from tests.support.executed import notebook_of, page_of

WIDGET_VIEW, WIDGET_STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
SHOWN = (
    {"text/html": "<table><td>aten.mm</td></table>"},
    {WIDGET_VIEW: {"version_major": 2, "model_id": "a1"}, "text/plain": ""},
)
STATE = {"a1": {"model_name": "AnyModel", "model_module": "anywidget", "state": {}}}


def converted(state: dict, *, is_clearing: bool) -> str:
    import nbformat

    notebook = notebook_of(["trace"])
    notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data) for data in SHOWN]
    if state:
        notebook.metadata["widgets"] = {WIDGET_STATE: {"version_major": 2, "version_minor": 0, "state": state}}
    return page_of(notebook, ClearMetadataPreprocessor={"enabled": is_clearing})


@pytest.mark.parametrize(
    ("state", "is_clearing", "has_widget"), [({}, False, False), (STATE, False, True), (STATE, True, False)]
)
def test_the_static_table_is_in_the_page(state, is_clearing, has_widget):
    page = converted(state, is_clearing=is_clearing)
    assert ("<td>aten.mm</td>" in page, WIDGET_STATE in page) == (True, has_widget)
