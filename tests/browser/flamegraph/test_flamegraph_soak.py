"""The flame graph under 300 random actions, twice: it says nothing, answers, and holds no more the second time."""

import pytest
from playwright.sync_api import Browser

from tests.browser.flame_page import FlamePage, training_step
from tests.browser.soak import Soaked, soak

KEYS = (
    *("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End", "Shift+ArrowRight", "Shift+ArrowDown", "Enter"),
    *(" ", "Escape", "h", "w", "s", "a", "d", "0", "1", "2", "i", "t", "n", "N", "c", "m", "z", "?"),
)
REPEATS = {"Net.blocks.0": "*", "Net.blocks.1": "*"}
STATES = {
    "a step": {"state": {**training_step(), "repeats": REPEATS}},
    "a difference": {"state": training_step(1.5, renamed=True), "base": training_step()},
    "20,000 frames": {"state": 20_000},
}


@pytest.mark.parametrize(("name", "actions"), [*zip(STATES, (300, 100, 100), strict=False)])
def test_it_says_nothing_and_holds_no_more(chromium: Browser, name: str, actions: int) -> None:
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    shown = FlamePage(page, **STATES[name])  # type: ignore[arg-type]
    words = ("mm", "gelu|add", "mm(", "^aten", "zzz")
    held = soak(Soaked(page.locator("main"), shown.stage, shown.search, KEYS, words), actions=actions)
    page.close()
    assert held.messages == []
    assert held.grown() == []
