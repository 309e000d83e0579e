"""Every notebook, executed and turned into HTML: offline and without scripts its page still shows what was found."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.executed import NOTEBOOKS, executed, page_of

# What each shows by nbkit: tables and pictures of the magics, the widget and the charts.
STATIC = {
    "01_trace_a_step": 2,
    "02_where_time_goes": 3,
    "03_device_vs_cpu": 3,
    "04_audit_a_training_step": 2,
    "05_cost_before_running": 2,
    "06_graphs_of_four_frameworks": 4,
    "07_capture_and_fix": 5,
    "08_side_by_side": 2,
}
TOLD = {
    "01_trace_a_step": ["Slowest modules", "blocks.0.att", "model.layers.0.self_attn"],
    "02_where_time_goes": ["Slowest calls", "self_attn", "added", "removed"],
    "03_device_vs_cpu": ["Worst differences", "aten.sigmoid_backward.default", "error, inf"],
    "04_audit_a_training_step": ["no_gradient", "unintended_broadcast", "accumulated_gradient", "Nothing wrong found"],
    "07_capture_and_fix": ["layer_norm", "Replaced ops", "What bfloat16 costs most", "not_repeatable"],
    "05_cost_before_running": [
        "encoder.layers",
        "It does not fit into",
        "optimizer state",
        "Predicted time",
    ],
    "06_graphs_of_four_frameworks": ["self_attn", "RWKV_TimeMix", "time_mix", "Side by side"],
    "08_side_by_side": ["The two agree", "First difference", "swapped_operands", "blocks.0"],
}
BROKEN = "images => images.filter(image => !image.complete || !image.naturalWidth).length"


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's page."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Your element with mimetype")  # of an output that nbconvert leaves out
        text = page_of(executed(request.param)[0])
    path = tmp_path_factory.mktemp("saved") / f"{request.param.stem}.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(chromium: Browser, saved: Path) -> Iterator[dict[bool, Page]]:
    """The page with and without scripts, opened where nothing but the file can be reached."""
    pages = {}
    for runs in (True, False):
        context = chromium.new_context(java_script_enabled=runs, offline=True, viewport={"width": 1000, "height": 900})
        pages[runs] = context.new_page()
        pages[runs].goto(saved.as_uri(), wait_until="domcontentloaded")
    yield pages
    for page in pages.values():
        page.context.close()


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def offline(request: pytest.FixtureRequest, opened: dict[bool, Page]) -> Page:
    return opened[request.param]


def test_tables_and_pictures_are_to_be_seen(offline: Page, saved: Path) -> None:
    twins = offline.locator(".nbkit-static")
    expect(twins).to_have_count(STATIC[saved.stem])
    for twin in twins.all():
        expect(twin.locator("table").first).to_be_visible()
    for picture in offline.locator(".nbkit-static svg, .jp-RenderedSVG svg, .jp-RenderedImage img").all():
        expect(picture).to_be_visible()
    told = "\n".join(twins.all_inner_texts())
    assert [text for text in TOLD[saved.stem] if text.lower() not in told.lower()] == []
    assert offline.locator(".jp-RenderedImage img").evaluate_all(BROKEN) == 0


def test_no_output_is_left_out(offline: Page, saved: Path) -> None:
    (path,) = [path for path in NOTEBOOKS if path.stem == saved.stem]
    count = sum(len(cell.outputs) for cell in executed(path)[0].cells if cell.cell_type == "code")
    outputs = offline.locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(count)
    assert [box for box in (output.bounding_box() for output in outputs.all()) if not box or box["height"] < 10] == []
