"""The overview above the frames: its window zooms, moves and resizes; and the hint of a wheel that does nothing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.flame_page import FlamePage, training_step

FORWARD, BACKWARD, OPTIMIZER = "#3b8cf6", "#d97706", "#159a4b"


@pytest.fixture
def step(page: Page) -> FlamePage:
    page.emulate_media(reduced_motion="reduce")
    return FlamePage(page, training_step())


@pytest.fixture
def clocked(chromium: Browser) -> Iterator[FlamePage]:
    """The step on a page of its own, as a clock that can be put forward stays with a page."""
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    page.clock.install()
    page.emulate_media(reduced_motion="reduce")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield FlamePage(page, training_step())
    page.close()
    assert errors == []


def overview(shown: FlamePage) -> Locator:
    return shown.page.locator(".nb-flame-minimap")


def drag(shown: FlamePage, start: float, end: float) -> None:
    """Drags in the overview from one fraction of its width to another."""
    box = overview(shown).bounding_box()
    assert box is not None
    mouse = shown.page.mouse
    mouse.move(box["x"] + box["width"] * start, box["y"] + 10)
    mouse.down()
    mouse.move(box["x"] + box["width"] * end, box["y"] + 10, steps=3)
    mouse.up()


def ends(shown: FlamePage) -> list[str]:
    return [shown.color(share, 1) for share in (0.01, 0.99)]


def test_a_drag_zooms_to_what_it_passes_over(step: FlamePage) -> None:
    drag(step, 0.42, 0.64)
    assert ends(step) == [BACKWARD, BACKWARD]
    expect(step.page.get_by_role("button", name="← Back")).to_be_enabled()


def test_the_window_and_its_edges_are_dragged_and_a_double_click_shows_all(step: FlamePage) -> None:
    drag(step, 0.42, 0.64)
    drag(step, 0.53, 0.23)
    assert ends(step) == [FORWARD, FORWARD]
    drag(step, 0.34, 0.86)
    assert ends(step) == [FORWARD, OPTIMIZER]
    overview(step).dblclick(position={"x": 10, "y": 10})
    assert ends(step) == [FORWARD, "#ffffff"]


def test_a_click_goes_there(step: FlamePage) -> None:
    drag(step, 0.05, 0.15)
    box = overview(step).bounding_box()
    assert box is not None
    overview(step).click(position={"x": box["width"] * 0.55, "y": 10})
    assert ends(step) == [BACKWARD, BACKWARD]


def test_it_shows_all_frames_and_which_are_in_view(step: FlamePage) -> None:
    color = """(canvas, share) => { const at = [Math.round(canvas.width * share), 12];
      return [...canvas.getContext("2d").getImageData(...at, 1, 1).data.slice(0, 3)]; }"""
    at = [overview(step).evaluate(color, share) for share in (0.1, 0.5, 0.8)]
    assert at == [[59, 140, 246], [217, 119, 6], [21, 154, 75]]
    drag(step, 0.42, 0.64)
    step.settle()
    veiled = [overview(step).evaluate(color, share) for share in (0.1, 0.5, 0.8)]
    assert [left == right for left, right in zip(at, veiled, strict=True)] == [False, True, False]


def test_it_is_of_merged_views_too(step: FlamePage) -> None:
    step.choose("Order", "left heavy")
    drag(step, 0.05, 0.25)
    assert ends(step) == [BACKWARD, BACKWARD]


def test_a_plain_wheel_that_does_nothing_says_how_to_zoom_three_times_at_most(clocked: FlamePage) -> None:
    hint = clocked.page.get_by_text("Hold Ctrl and scroll to zoom")
    expect(hint).to_be_hidden()
    for _ in range(3):
        clocked.hover(0.5, 1)
        clocked.page.mouse.wheel(0, 100)
        expect(hint).to_be_visible()
        clocked.page.clock.fast_forward(1_600)
        expect(hint).to_be_hidden()
    clocked.page.mouse.wheel(0, 100)
    clocked.settle()
    expect(hint).to_be_hidden()


def test_who_zooms_by_the_wheel_is_told_no_more(step: FlamePage) -> None:
    step.hover(0.5, 1)
    step.page.keyboard.down("Control")
    step.page.mouse.wheel(0, -100)
    step.page.keyboard.up("Control")
    step.page.mouse.wheel(0, 100)
    step.settle()
    expect(step.page.get_by_text("Hold Ctrl and scroll to zoom")).to_be_hidden()
