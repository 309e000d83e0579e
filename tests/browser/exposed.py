"""Python functions that a page calls: the page is the worker's, and keeps a name for ever that it was once given."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Page

FUNCTIONS: WeakKeyDictionary[Page, dict[str, Callable[..., Any]]] = WeakKeyDictionary()


def expose(page: Page, name: str, function: Callable[..., Any]) -> None:
    """Makes `window[name]` of the page this function, in place of one that an earlier test gave."""
    functions = FUNCTIONS.setdefault(page, {})
    if name not in functions:
        page.expose_function(name, lambda *values: functions[name](*values))
    functions[name] = function
