"""A function that is replaced for a while, by several patches that end in any order."""

from collections.abc import Callable
from itertools import permutations
from types import SimpleNamespace

import pytest

from nbkit.capture.raw.patching import Patch


def bare() -> list[str]:
    return ["bare"]


def installed(holder: SimpleNamespace, name: str) -> Patch:
    """A patch that adds its name to what the function gave before."""
    patch = Patch(holder, "function")

    def wrapped() -> list[str]:
        below: Callable[[], list[str]] = patch.before
        return [*below(), name]

    patch.install(wrapped)
    return patch


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_patches_may_end_in_any_order(order: tuple[str, ...]) -> None:
    holder = SimpleNamespace(function=bare)
    patches = {name: installed(holder, name) for name in "abc"}
    left = ["bare", "a", "b", "c"]
    assert holder.function() == left
    for name in order:
        patches[name].remove()
        left.remove(name)
        assert holder.function() == left
    assert holder.function is bare


def test_a_patch_that_is_not_installed_or_was_removed_changes_nothing() -> None:
    holder = SimpleNamespace(function=bare)
    Patch(holder, "function").remove()
    first, second = installed(holder, "a"), installed(holder, "b")
    kept = first.function
    first.remove()
    first.remove()
    assert holder.function() == ["bare", "b"]
    assert not hasattr(kept, "patch")
    assert (first.function, first.before) == (None, bare)
    second.remove()
    assert holder.function is bare


def test_what_others_replaced_meanwhile_stays() -> None:
    holder = SimpleNamespace(function=bare)
    patch = installed(holder, "a")

    def other() -> list[str]:
        return ["other"]

    holder.function = other
    patch.remove()
    assert holder.function is other


def test_of_a_function_that_a_class_inherits_nothing_stays_on_the_class() -> None:
    class Base:
        def function(self) -> str:
            return "bare"

    class Derived(Base):
        pass

    patch = Patch(Derived, "function")
    patch.install(lambda self: "patched")
    assert (Derived().function(), Base().function()) == ("patched", "bare")
    patch.remove()
    assert Derived().function() == "bare"
    assert "function" not in vars(Derived)
