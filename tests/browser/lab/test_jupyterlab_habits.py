"""In a true JupyterLab: a long cell leaves no band of progress, and options are completed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.jupyterlab import run_all, running_lab

ROOT = Path(__file__).parents[3]
CELLS = (
    """\
%load_ext nbkit
import os, time, torch
from nbkit import progress
os.environ.pop("NBKIT_PROGRESS", None)
progress.PATIENCE_S, progress.EVERY_S = 0.1, 0.1
x = torch.ones(2, 2)""",
    """\
%%optrace -q -o timed
for _ in range(10):
    x @ x
    time.sleep(0.1)""",
    'print("all ran")',
    "",
)
# Of each output area of the second cell: its height, and what it says.
OUTPUTS = """page => [...document.querySelectorAll('.jp-CodeCell')[1].querySelectorAll('.jp-OutputArea-child')].map(
  child => [child.getBoundingClientRect().height, child.textContent])"""


@pytest.fixture(scope="module")
def lab(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Path]]:
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder, CELLS) as url:
        page = chromium.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(url)
        run_all(page)
        expect(page.get_by_text("all ran", exact=True)).to_be_visible(timeout=120_000)
        yield page, folder / "step.ipynb"
        page.close()


def test_progress_of_a_long_cell_leaves_no_band(lab: tuple[Page, Path]) -> None:
    page, _ = lab
    assert sum(height for height, _ in page.evaluate(OUTPUTS)) == 0
    assert page.locator('.jp-CodeCell [data-mime-type="application/vnd.jupyter.stderr"]').count() <= 1


def test_the_saved_file_has_nothing_of_it(lab: tuple[Page, Path]) -> None:
    page, path = lab
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=30_000)
    outputs = json.loads(path.read_text())["cells"][1]["outputs"]
    assert [output.get("data") for output in outputs] == [{}]


def test_tab_completes_an_option_and_the_name_of_a_trace(lab: tuple[Page, Path]) -> None:
    page, _ = lab
    editor = page.locator(".jp-CodeCell .cm-content").nth(3)
    for typed, offered in (("%%optime --me", "--memory"), ("%opreport tim", "timed")):
        complete(page, editor, typed, editor.filter(has_text=offered))
    offers = page.locator(".jp-Completer-item")
    complete(page, editor, "%%optrace --values stats --", offers.filter(has_text="--threads"))
    assert offers.filter(has_text="--").count() == offers.count() > 5
    page.screenshot(path=ROOT / "out" / "jupyterlab_completion.png")
    page.keyboard.press("Escape")


def complete(page: Page, editor: Locator, typed: str, shown: Locator) -> None:
    """Types and presses Tab until it is shown: JupyterLab waits a second for a kernel, which a busy machine exceeds."""
    for _ in range(8):
        editor.click()
        page.keyboard.press("Control+a")
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
        page.wait_for_timeout(2_000)
        if shown.count():
            break
        page.keyboard.press("Escape")
    expect(shown.first).to_be_visible()
