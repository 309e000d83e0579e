"""A notebook saved in JupyterLab: what its file holds, and what others see of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from nbkit.views.static_html.display import BRIEF
from nbkit.views.static_html.mimebundle import WIDGET_VIEW
from tests.browser.jupyterlab import run_all, running_lab
from tests.support.executed import page_of, read

CELLS = (
    "%load_ext nbkit\nimport nbkit, torch",
    "%%optime -o trace\nloss = torch.nn.Linear(3, 3)(torch.ones(3, 3)).sum()\nloss.backward()",
    "nbkit.OpTable(trace)",
)
Cell = dict[str, Any]


@pytest.fixture(scope="module")
def lab(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address and the file of a notebook that was run and saved by hand."""
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder, CELLS) as url:
        page = chromium.new_page(viewport={"width": 1480, "height": 1400})
        page.goto(url)
        run_all(page)
        expect(page.locator(".nb-grid")).to_have_count(2, timeout=120_000)
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.close()
        yield url, folder / "step.ipynb"


def saved_cells(path: Path) -> list[Cell]:
    found: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def test_the_file_has_the_twins_and_no_state_of_widgets(lab):
    _, path = lab
    assert "widgets" not in json.loads(path.read_text(encoding="utf-8"))["metadata"]
    shown = [output["data"].keys() for cell in saved_cells(path) for output in cell["outputs"]]
    twins, widget = {"text/html", "text/plain"}, {WIDGET_VIEW, "text/plain"}
    assert shown == [{*twins, "text/markdown", BRIEF}, widget, twins, widget]


def test_its_page_shows_the_tables_offline(lab, chromium: Browser, tmp_path: Path):
    text = page_of(read(lab[1]))
    (tmp_path / "step.html").write_text(text, encoding="utf-8")
    context = chromium.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "step.html").as_uri())
    expect(page.locator(".nbkit-static")).to_have_count(2)
    expect(page.locator(".nbkit-static svg").first).to_be_visible()
    expect(page.get_by_role("table", name="Slowest ops").first).to_contain_text("aten.addmm.default")
    context.close()


def test_a_colleague_who_opens_it_sees_the_tables(lab, chromium: Browser):
    url, path = lab
    text = path.read_text(encoding="utf-8").replace("nbkit.OpTable(trace)", "nbkit.OpTable( trace)")
    (path.parent / "sent.ipynb").write_text(text, encoding="utf-8")  # changed, so that it is not the author's own
    page = chromium.new_page(viewport={"width": 1480, "height": 1400})
    page.goto(url.replace("step.ipynb", "sent.ipynb"))
    expect(page.locator(".nbkit-static")).to_have_count(2, timeout=120_000)
    expect(page.get_by_role("table", name="Slowest ops").first).to_be_visible()
    expect(page.locator(".nb-grid")).to_have_count(0)
    page.close()
