"""The CPU time that an answer takes, in the page and here: it says the same on a loaded machine, wall time does not."""

import sys
from collections.abc import Callable
from time import process_time

from playwright.sync_api import CDPSession, Page


def work(page: Page, what: str, *acts: Callable[[], object], with_kernel: bool = True) -> float:
    """CPU seconds of the page's main thread, and of this process, which plays the kernel, in all acts together."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    started = _spent(session, with_kernel)
    for act in acts:
        act()
    seconds = _spent(session, with_kernel) - started
    session.detach()
    sys.stdout.write(f"{what}: {seconds * 1e3:.0f} ms of CPU time\n")
    return seconds


def _spent(session: CDPSession, with_kernel: bool) -> float:
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ThreadTime"]) + with_kernel * process_time()
