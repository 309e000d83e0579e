"""The flame graph at 1,000,000 frames in headless Chromium against its budgets: first draw, zoom frame, search, range.

Run from the root: `python bench/views/flamegraph.py [--frames N]`. Every time is taken in the page, until the
pixels are there: reading one of them back ends each measurement.
"""

import argparse
from typing import Any

from bench.harness import chromium
from bench.harness.chromium import report
from tests.browser.flame_page import FlamePage

FIRST_MS, FRAME_MS, SEARCH_MS = 150.0, 16.0, 50.0
REPEATS = 5
SIZE = {"width": 1400, "height": 900}
# Times the work of each animation frame, the canvas included; `settled` waits until no more are asked for.
WATCH = """() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.frames = []; let open = 0;
  window.readBack = () => document.querySelectorAll(".nb-flame-view > canvas, .nb-flame-canvas").forEach((canvas) =>
    canvas.getContext("2d").getImageData(0, 0, 1, 1));
  window.requestAnimationFrame = (draw) => { open += 1; return ask((now) => {
    const start = performance.now(); open -= 1; draw(now); window.readBack();
    window.frames.push(performance.now() - start);
  }); };
  const cancel = window.cancelAnimationFrame.bind(window);
  window.cancelAnimationFrame = (id) => { if (id) open = Math.max(0, open - 1); cancel(id); };
  window.settled = () => new Promise((done) => {
    const look = () => (open ? ask(look) : ask(() => done())); ask(look); });
  const later = window.setTimeout.bind(window); window.timers = [];
  window.setTimeout = (act, pause) => later(() => window.timers.push(window.timed(act)), pause);
  window.timed = (act) => { const start = performance.now(); act(); return performance.now() - start; };
}"""
RENDER = """async () => { window.cleanUp(); const el = document.getElementById("host"); el.replaceChildren();
  const start = performance.now(); window.cleanUp = await window.module.render({ model: window.model, el });
  window.readBack(); return performance.now() - start; }"""
WHEEL = """async ([steps, delta]) => { await window.settled(); window.frames.length = 0;
  const canvas = document.querySelector(".nb-flame-canvas"); const { left, top } = canvas.getBoundingClientRect();
  for (let step = 0; step < steps; step += 1) { canvas.dispatchEvent(new WheelEvent("wheel",
    { bubbles: true, cancelable: true, ctrlKey: true, deltaY: delta, clientX: left + 500, clientY: top + 100 }));
    await window.settled(); }
  return window.frames; }"""
# The pause for more letters is not counted.
SEARCH = """async (text) => { await window.settled(); window.frames.length = window.timers.length = 0;
  const input = document.querySelector(".nb-search"); input.value = text; input.dispatchEvent(new Event("input"));
  while (!window.timers.length || !window.frames.length) await new Promise(requestIdleCallback);
  return window.timers[0] + window.frames[0]; }"""
CHOOSE = """async ([label, value]) => { await window.settled(); window.frames.length = 0;
  const select = document.querySelector(`select[aria-label="${label}"]`); select.value = value;
  const time = window.timed(() => select.dispatchEvent(new Event("change"))); await window.settled();
  return time + window.frames[0]; }"""
CLICK = """async (selector) => { await window.settled(); window.frames.length = 0;
  const time = window.timed(() => document.querySelector(selector).click()); await window.settled(); return time; }"""
KEY = """async (key) => { await window.settled(); window.frames.length = 0;
  const stage = document.querySelector(".nb-flame-stage");
  const event = new KeyboardEvent("keydown", { key, bubbles: true });
  const time = window.timed(() => stage.dispatchEvent(event)); await window.settled();
  return time + (window.frames[0] ?? 0); }"""


# Drags over nearly all of the time axis; the sums come when the pointer is let go.
RANGE = """async () => { await window.settled(); window.frames.length = 0;
  const canvas = document.querySelector(".nb-flame-canvas");
  const { left, top, width } = canvas.getBoundingClientRect();
  const send = (type, part) => window.timed(() => canvas.dispatchEvent(new PointerEvent(type,
    { bubbles: true, cancelable: true, pointerId: 1, clientX: left + width * part, clientY: top + 60 })));
  canvas.setPointerCapture = () => {}; send("pointerdown", 0.01); const times = [];
  for (let step = 1; step <= 20; step += 1) { send("pointermove", step / 21); await window.settled(); }
  times.push(...window.frames); const last = send("pointerup", 0.99); await window.settled(); return [times, last]; }"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="number of frames (default: 1,000,000)")
    count = parser.parse_args().frames
    with chromium.browser() as browser:
        page = browser.new_page(viewport=SIZE)
        page.emulate_media(reduced_motion="reduce")
        FlamePage(page, count)
        page.evaluate(WATCH)
        print(f"{count:,} frames, {SIZE['width']} x {SIZE['height']} pixels; medians of {REPEATS}")
        measure(page)


def measure(page: Any) -> None:
    report("first draw, data at hand", [page.evaluate(RENDER) for _ in range(REPEATS)], FIRST_MS)
    report("zoom frame, 40 wheel steps in", page.evaluate(WHEEL, [40, -60]), FRAME_MS)
    report("zoom frame, 40 wheel steps out", page.evaluate(WHEEL, [40, 60]), FRAME_MS)
    report("search with highlight drawn", [page.evaluate(SEARCH, text) for text in SEARCHES], SEARCH_MS)
    report("zoom frame during a search", page.evaluate(WHEEL, [40, -60]), FRAME_MS)
    page.evaluate(WHEEL, [40, 60])
    report("arrow key to the next frame", [page.evaluate(KEY, "ArrowDown") for _ in range(REPEATS)], FRAME_MS)
    page.evaluate(SEARCH, "")
    drags = [page.evaluate(RANGE) for _ in range(REPEATS)]
    report("frame of a drag of a range", [time for times, _ in drags for time in times], FRAME_MS)
    report("range summed up, nearly all frames", [last for _, last in drags], SEARCH_MS)
    page.evaluate(KEY, "Escape")
    for label, value in VIEWS:
        name = f"{label.lower()}: {value}"
        report(f"built and drawn, {name}", [page.evaluate(CHOOSE, [label, value])])
        if label != "Color":
            report(f"zoom frame, {name}", page.evaluate(WHEEL, [20, -60]), FRAME_MS)
            page.evaluate(WHEEL, [20, 60])
    report("table twin opened", [page.evaluate(CLICK, "button[title^='The same data']")])


SEARCHES = ("softmax", "mm|add", "^aten\\.", "v[0-3]$", "gelu")
# Each is built when it is first asked for, so it is measured once.
VIEWS = (
    ("Color", "family"),
    ("Order", "heavy"),
    ("Group", "module"),
    ("Group", "op"),
    ("Group", "phase"),
    ("Group", "none"),
    ("Order", "time"),
)


if __name__ == "__main__":
    main()
