"""A report of 100,000 events against its budgets: its size, and how long it takes to open from a file in Chromium.

Run from the root: `python bench/views/report.py [--events N]`. The events are those of real training steps, as
optime, optrace and opdiff record them, each in a report of its own. Opening is measured in the page, from the start
of the navigation until each widget shows something.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbkit
from bench.harness import chromium
from bench.harness.steps import launch_bound

SIZE_BYTES, OPEN_MS = 1_500_000, 1000.0
REPEATS = 3
# From the start of the navigation to a drawn frame in which each widget shows something.
OPENED = """() => new Promise((done) => {
  const isThere = (panel) => panel.querySelector(".nb-body .nb-row, .nb-flame-canvas");
  const look = () => {
    if (![...document.querySelectorAll(".nbkit-panel")].every(isThere)) setTimeout(look, 1);
    else requestAnimationFrame(() => done(performance.now()));
  };
  look();
})"""
VERBS: dict[str, Callable[[], Any]] = {"optime": nbkit.optime, "optrace": nbkit.optrace, "opdiff": nbkit.opdiff}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="rows of ops, at least (default: 100,000)")
    count = parser.parse_args().events
    with chromium.browser() as browser, tempfile.TemporaryDirectory() as folder:
        for name, verb in VERBS.items():
            trace = recorded(verb, count)
            path = Path(folder) / f"{name}.html"
            started = time.perf_counter()
            nbkit.opreport(trace, path=path)
            print(f"{name}, {len(trace.ops):,} events: written in {time.perf_counter() - started:.1f} s")
            said("  size, bytes", path.stat().st_size, SIZE_BYTES)
            wall, busy = zip(*(opened(browser, path) for _ in range(REPEATS)), strict=True)
            said("  opened, ms", statistics.median(wall), OPEN_MS)
            print(f"  of that the page's thread was busy for {statistics.median(busy):,.0f} ms")


def recorded(verb: Callable[[], Any], count: int) -> nbkit.Trace:
    """Returns a trace of as few whole training steps as make `count` events."""
    step = launch_bound()
    step.run()  # the first one has ops of its own: it makes the optimizer's state
    with verb() as one:
        step.run()
    with verb() as trace:
        for _ in range(math.ceil(count / len(one.ops))):
            step.run()
    assert isinstance(trace, nbkit.Trace)
    return trace


def opened(browser: Any, path: Path) -> tuple[float, float]:
    """Returns milliseconds until the report is open, and of CPU time of its thread until then.

    Ends the program if the report asks for something, or complains.
    """
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    noise: list[str] = []
    page.on("console", lambda message: noise.append(message.text))
    page.on("request", lambda request: noise.append(request.url))
    clock = page.context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri(), wait_until="commit")
    taken: float = page.evaluate(OPENED)
    metrics = {metric["name"]: metric["value"] for metric in clock.send("Performance.getMetrics")["metrics"]}
    page.close()
    if noise != [path.as_uri()]:
        raise SystemExit(f"The report asked for or said: {noise[1:]}")
    return taken, metrics["ThreadTime"] * 1000


def said(what: str, value: float, budget: float) -> None:
    print(f"{what:16} {value:12,.0f}  {'ok' if value <= budget else 'OVER'}, budget {budget:,.0f}")


if __name__ == "__main__":
    main()
