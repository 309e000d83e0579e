"""One true JupyterLab run: the cells run, the op table comes, a click reaches the kernel, the theme is followed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.jupyterlab import change_theme, in_kernel, run_all, running_lab, wait_for_kernel

ROOT = Path(__file__).parents[3]
# From the repository's root, so that source lines read the same on every machine.
CELLS = (
    f"""\
%cd -q {ROOT}
%load_ext nbkit
import torch
from sample_models.rwkv4 import RWKV4, RWKV4Config

model = RWKV4(RWKV4Config(vocab_size=256, context_length=64, width=128, layers=4, head_qk=64))
optimizer = torch.optim.AdamW(model.parameters())
ids = torch.randint(256, (4, 65))""",
    """\
%%optrace -o trace --values stats --name "RWKV-4 step"
loss = model(ids[:, :-1], ids[:, 1:])
loss.backward()
optimizer.step()""",
    """\
from nbkit.views.op_table.widget import OpTable
widget = OpTable(trace)
widget""",
)
BRIGHTNESS = """element => {
  let layer = element;
  while (layer && getComputedStyle(layer).backgroundColor === 'rgba(0, 0, 0, 0)') layer = layer.parentElement;
  const [red, green, blue] = getComputedStyle(layer).backgroundColor.match(/[0-9.]+/g).map(Number);
  return (red + green + blue) / 765;
}"""

# Pixels between the text of a label and that of its figure, to the right of it or below.
GAPS = """labels => labels.map(label => {
  const [text, figure] = [label, label.nextElementSibling].map(element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect();
  });
  return Math.max(figure.left - text.right, figure.top - text.bottom + 1);
})"""


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The notebook in JupyterLab, all its cells run and both tables filled."""
    with running_lab(tmp_path_factory.mktemp("lab"), CELLS) as url:
        page = chromium.new_page(viewport={"width": 1480, "height": 1400})
        page.goto(url)
        run_all(page)
        expect(rows(page).first).to_be_visible(timeout=120_000)
        yield page
        page.close()


def cell(page: Page, place: int) -> Locator:
    return page.locator(".jp-Cell").nth(place)


def grid(page: Page, place: int = 2) -> Locator:
    """The op table below a cell: that of the magic is in cell 1, the one that the kernel names `widget` in cell 2."""
    return cell(page, place).get_by_role("grid")


def rows(page: Page, place: int = 2) -> Locator:
    return grid(page, place).locator("[role=row][aria-selected]")


def test_the_magic_shows_the_table_below_its_cell(page):
    expect(grid(page, 1)).to_be_visible()
    expect(page.locator(".jp-OutputArea [data-mime-type*=error]")).to_have_count(0)


def test_the_table_counts_the_ops_of_the_trace(page):
    count = int(in_kernel(page, "len(trace.ops)"))
    expect(cell(page, 2).get_by_role("status").first).to_contain_text(f"{count:,} ops")


def test_a_click_on_a_row_reaches_the_kernel(page):
    assert in_kernel(page, "widget.selected_op_id") == "None"
    rows(page).nth(3).click()
    expect(rows(page).nth(3)).to_have_attribute("aria-selected", "true")
    op_id = wait_for_kernel(page, "widget.selected_op_id")
    op = in_kernel(page, f"trace.ops['op'][{op_id}]")
    expect(rows(page).nth(3)).to_contain_text(op.strip("'").split(".")[-1])


def test_the_table_follows_the_theme(page):
    light = grid(page).evaluate(BRIGHTNESS)
    change_theme(page, "JupyterLab Dark", light=False)
    dark = grid(page).evaluate(BRIGHTNESS)
    change_theme(page, "JupyterLab Light", light=True)
    assert light > 0.8
    assert dark < 0.3


def test_no_label_of_the_header_lies_on_its_figure(page):
    # JupyterLab has rules of its own for definition lists in outputs.
    gaps = cell(page, 1).locator("dt").evaluate_all(GAPS)
    assert len(gaps) > 3
    assert min(gaps) > 0


def test_a_screenshot_is_kept(page):
    # The picture in the README is a copy of this one.
    rows(page, 1).nth(13).click()
    expect(rows(page, 1).nth(13)).to_have_attribute("aria-selected", "true")
    expect(cell(page, 1).get_by_text("blocks.0.att.time_mix_k").first).to_be_visible()
    modules = cell(page, 1).get_by_role("button", name="Modules")
    if modules.get_attribute("aria-expanded") == "false":
        modules.click()
    page.mouse.move(0, 0)
    (ROOT / "out").mkdir(exist_ok=True)
    cell(page, 1).screenshot(path=ROOT / "out/op_table.png")
    assert (ROOT / "out/op_table.png").stat().st_size > 20_000
