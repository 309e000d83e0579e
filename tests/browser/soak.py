"""A soak of a widget: many random actions with a fixed seed; what the page says meanwhile, and what it holds after."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from playwright.sync_api import CDPSession, ElementHandle, Locator, Page

from tests.browser.op_table.test_op_table_looks import DARK, LIGHT, SET_THEME

# What a select or a button of the tools is set to; the state that a round begins with is brought back by it.
TOOLS = """(root) => [...root.querySelectorAll(".nb-tools select, .nb-tools button")].map((tool) =>
  tool.value || tool.getAttribute("aria-pressed") || tool.getAttribute("aria-expanded"))"""
BRING_BACK = """(root, wanted) => root.querySelectorAll(".nb-tools select, .nb-tools button").forEach((tool, at) => {
  if (tool.disabled || tool.hidden) return;
  if (tool.localName === "select") {
    if (tool.value === wanted[at]) return;
    tool.value = wanted[at];
    tool.dispatchEvent(new Event("change", { bubbles: true }));
  } else if (wanted[at] !== (tool.getAttribute("aria-pressed") || tool.getAttribute("aria-expanded"))) tool.click();
})"""
CHOOSE = """(root, chance) => {
  const options = [...root.querySelectorAll(".nb-tools select:not(:disabled) option:not(:disabled)")]
    .filter((option) => !option.closest("select").hidden);
  if (!options.length) return;
  const option = options[Math.floor(chance * options.length)];
  option.closest("select").value = option.value;
  option.closest("select").dispatchEvent(new Event("change", { bubbles: true }));
}"""
# As often as leads back from wherever a round ends; what has the focus may go, and another element has it then.
ESCAPE = """() => {
  for (let time = 0; time < 60; time += 1) {
    for (const type of ["keydown", "keyup"]) {
      const event = new KeyboardEvent(type, { key: "Escape", code: "Escape", bubbles: true, cancelable: true });
      (document.activeElement ?? document.body).dispatchEvent(event);
    }
  }
}"""
# Playwright's own look at an element waits for frames in which it does not move, which is most of the time of a soak.
PLACE = """(stage) => {
  if (!stage.isConnected) return null;
  stage.scrollIntoViewIfNeeded();
  const { x, y, width, height } = stage.getBoundingClientRect();
  return [x, y, width, height];
}"""
FOCUS = "(stage) => stage.isConnected ? (stage.focus(), true) : null"

PARTS = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")
# What the browser's protocol calls a held key.
CONTROL, SHIFT = 2, 8


@dataclass(frozen=True)
class Soaked:
    """What is soaked: the widget, what of it is zoomed, dragged and clicked, its search, keys, words to look for.

    `pause_ms` is longer than the widget waits before it does what was asked for.
    """

    root: Locator
    stage: Locator
    search: Locator
    keys: Sequence[str]
    words: Sequence[str]
    pause_ms: int = 500


@dataclass
class Hand:
    """What acts on a widget: keys, and a mouse whose presses and turns need no move before them.

    The browser answers each move in its next frame, and Playwright's mouse moves to wherever it does something else.
    To find an element takes longer than to ask it something, so the stage is looked for again only when it is gone.
    """

    widget: Soaked
    random: Random
    session: CDPSession
    stage: ElementHandle

    def on_stage(self, script: str) -> Any:
        """What the script says of the stage."""
        if (said := self.stage.evaluate(script)) is None:
            self.stage = self.widget.stage.element_handle()
            said = self.stage.evaluate(script)
        return said

    def somewhere(self) -> tuple[float, float]:
        """A place on the stage, as far as that is in the window."""
        x, y, width, height = self.on_stage(PLACE)
        return x + width * self.random.random(), y + height * self.random.random()

    def mouse(self, kind: str, place: tuple[float, float], **others: object) -> None:
        event = {"type": f"mouse{kind}", "x": place[0], "y": place[1], **others}
        self.session.send("Input.dispatchMouseEvent", event)

    def press(self, place: tuple[float, float], modifiers: int = 0) -> None:
        self.mouse("Pressed", place, button="left", buttons=1, clickCount=1, modifiers=modifiers)

    def release(self, place: tuple[float, float], modifiers: int = 0) -> None:
        self.mouse("Released", place, button="left", clickCount=1, modifiers=modifiers)


@dataclass
class Held:
    """What the page holds after each round, when its garbage is collected, and all that it said meanwhile."""

    heap_bytes: list[float] = field(default_factory=list)
    nodes: list[float] = field(default_factory=list)
    listeners: list[float] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def grown(self) -> list[str]:
        """Names what the last round added to; some hundred bytes for each action are the engine's own."""
        allowed = {"heap_bytes": (1.05, 500_000), "nodes": (1.05, 60), "listeners": (1.05, 20)}
        values = {name: getattr(self, name)[-2:] for name in allowed}
        return [
            f"{name}: {before:,.0f}, then {after:,.0f}"
            for name, (before, after) in values.items()
            if after > before * allowed[name][0] + allowed[name][1]
        ]


def soak(widget: Soaked, *, actions: int = 300, most_rounds: int = 6, seed: int = 7) -> Held:
    """Does the same random actions in each round, from the same state on, twice or until a round adds nothing.

    What a first round leaves behind may be caches, which have a bound, and what is open then is not what a new widget
    has open; on a busy machine a round may end with another box chosen, whose panel holds more. So a round that adds is
    followed by another one: a leak adds in every round, what has a bound does not.
    """
    held, page = Held(), widget.root.page
    page.on("console", lambda message: held.messages.append(message.text))
    page.on("pageerror", lambda error: held.messages.append(str(error)))
    begin = widget.root.evaluate(TOOLS)
    session = page.context.new_cdp_session(page)
    while len(held.nodes) < 2 or (held.grown() and len(held.nodes) < most_rounds):
        hand = Hand(widget, Random(seed), session, widget.stage.element_handle())
        for _ in range(actions):
            hand.random.choice(ACTIONS)(hand)
        _bring_back(widget, begin)
        _measure(page, held)
    session.detach()
    return held


def _zoom(hand: Hand) -> None:
    turn = {"deltaX": 0, "deltaY": hand.random.uniform(-400, 300), "modifiers": CONTROL}
    _held_key(hand, "Control", lambda: hand.mouse("Wheel", hand.somewhere(), **turn))


def _scroll(hand: Hand) -> None:
    turn = {"deltaX": hand.random.choice((0, 80)), "deltaY": hand.random.uniform(-200, 200)}
    hand.mouse("Wheel", hand.somewhere(), **turn)


def _drag(hand: Hand, modifiers: int = 0) -> None:
    start = hand.somewhere()
    hand.press(start, modifiers)
    end = hand.somewhere()
    for place in (((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), end):
        hand.mouse("Moved", place, button="left", buttons=1, modifiers=modifiers)
    hand.release(end, modifiers)


def _pan(hand: Hand) -> None:
    _held_key(hand, "Shift", lambda: _drag(hand, SHIFT))


def _click(hand: Hand) -> None:
    place = hand.somewhere()
    hand.mouse("Moved", place)
    hand.press(place)
    hand.release(place)


def _press(hand: Hand) -> None:
    hand.on_stage(FOCUS)
    for _ in range(3):
        hand.widget.root.page.keyboard.press(hand.random.choice(hand.widget.keys))


def _search(hand: Hand) -> None:
    hand.widget.search.fill(hand.random.choice((*hand.widget.words, "")))


def _choose(hand: Hand) -> None:
    hand.widget.root.evaluate(CHOOSE, hand.random.random())


def _theme(hand: Hand) -> None:
    hand.widget.root.page.evaluate(SET_THEME, hand.random.choice(([True, LIGHT], [False, DARK])))


ACTIONS = (_zoom, _zoom, _scroll, _drag, _pan, _click, _press, _press, _search, _choose, _theme)


def _held_key(hand: Hand, key: str, act: Callable[[], object]) -> None:
    keyboard = hand.widget.root.page.keyboard
    keyboard.down(key)
    try:
        act()
    finally:
        keyboard.up(key)


def _bring_back(widget: Soaked, begin: list[str]) -> None:
    page = widget.root.page
    page.mouse.move(0, 0)
    widget.search.fill("")
    widget.stage.focus()
    page.evaluate(ESCAPE)
    # Twice, as one tool may enable another one.
    for _ in range(2):
        widget.root.evaluate(BRING_BACK, begin)
    page.evaluate(SET_THEME, [True, LIGHT])
    page.wait_for_timeout(widget.pause_ms)


def _measure(page: Page, held: Held) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    usage = session.send("Runtime.getHeapUsage")
    # Typed arrays and what the page's elements hold lie outside of the heap of JavaScript.
    held.heap_bytes.append(sum(usage.get(part, 0) for part in PARTS))
    held.nodes.append(metrics["Nodes"])
    held.listeners.append(metrics["JSEventListeners"])
    session.detach()
