"""A soak of a widget: many random actions with a fixed seed; what the page says meanwhile, and what it holds after."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from playwright.sync_api import Locator, Page

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
  stage.scrollIntoViewIfNeeded();
  const { x, y, width, height } = stage.getBoundingClientRect();
  return [x, y, width, height];
}"""

PARTS = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")


@dataclass(frozen=True)
class Soaked:
    """What is soaked: the widget, what of it is zoomed, dragged and clicked, its search, keys, words to look for."""

    root: Locator
    stage: Locator
    search: Locator
    keys: Sequence[str]
    words: Sequence[str]


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
    """Does the same random actions in each round, from the same state on, and once before they are counted.

    What a first round leaves behind may be caches, which have a bound, and what is open then is not what a new widget
    has open; what grows in the next rounds has no bound. On a busy machine a round may end with another box chosen,
    whose panel holds more, so a round that adds is followed by another one: a leak adds in every round.
    """
    held, page = Held(), widget.root.page
    page.on("console", lambda message: held.messages.append(message.text))
    page.on("pageerror", lambda error: held.messages.append(str(error)))
    begin = widget.root.evaluate(TOOLS)
    _round(widget, begin, actions, seed)
    while len(held.nodes) < 2 or (held.grown() and len(held.nodes) < most_rounds):
        _round(widget, begin, actions, seed)
        _measure(page, held)
    return held


def _round(widget: Soaked, begin: list[str], actions: int, seed: int) -> None:
    random = Random(seed)
    for _ in range(actions):
        random.choice(ACTIONS)(widget, random)
    _bring_back(widget, begin)


def _zoom(widget: Soaked, random: Random) -> None:
    _over(widget, random)
    _held_key(widget.root.page, "Control", lambda: widget.root.page.mouse.wheel(0, random.uniform(-400, 300)))


def _scroll(widget: Soaked, random: Random) -> None:
    _over(widget, random)
    widget.root.page.mouse.wheel(random.choice((0, 80)), random.uniform(-200, 200))


def _drag(widget: Soaked, random: Random) -> None:
    mouse = widget.root.page.mouse
    _over(widget, random)
    mouse.down()
    _over(widget, random)
    mouse.up()


def _pan(widget: Soaked, random: Random) -> None:
    _held_key(widget.root.page, "Shift", lambda: _drag(widget, random))


def _click(widget: Soaked, random: Random) -> None:
    _over(widget, random)
    widget.root.page.mouse.down()
    widget.root.page.mouse.up()


def _press(widget: Soaked, random: Random) -> None:
    widget.stage.focus()
    for _ in range(3):
        widget.root.page.keyboard.press(random.choice(widget.keys))


def _search(widget: Soaked, random: Random) -> None:
    widget.search.fill(random.choice((*widget.words, "")))


def _choose(widget: Soaked, random: Random) -> None:
    widget.root.evaluate(CHOOSE, random.random())


def _theme(widget: Soaked, random: Random) -> None:
    widget.root.page.evaluate(SET_THEME, random.choice(([True, LIGHT], [False, DARK])))


ACTIONS = (_zoom, _zoom, _scroll, _drag, _pan, _click, _press, _press, _search, _choose, _theme)


def _over(widget: Soaked, random: Random) -> None:
    """Moves the pointer to somewhere on the stage, as far as that is in the window."""
    x, y, width, height = widget.stage.evaluate(PLACE)
    widget.root.page.mouse.move(x + width * random.random(), y + height * random.random(), steps=2)


def _held_key(page: Page, key: str, act: object) -> None:
    page.keyboard.down(key)
    try:
        act()  # type: ignore[operator]
    finally:
        page.keyboard.up(key)


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
    # What was asked for with a pause is done.
    page.wait_for_timeout(500)


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
