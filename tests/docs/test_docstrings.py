"""How a docstring is read into the parts of a page."""

import pytest

from docs.generator.markdown import listed
from nbkit.verbs.options.docstrings import read


def documented(values, count):
    """The values, counted.

    In any
    order.

    Args:
        values: what to count,
            of any kind.
        count, start: numbers: from 0 up.

    Raises:
        ValueError: if there is none.

    Never None.
    """


def test_a_docstring_is_read_in_parts():
    doc = read(documented)
    assert doc.head == "The values, counted."
    assert doc.body == "In any\norder.\n\nNever None."
    assert doc.args == [("values", "what to count, of any kind."), ("count, start", "numbers: from 0 up.")]
    assert doc.raises == [("ValueError", "if there is none.")]


def test_entries_are_listed_and_linked():
    assert listed([("a, b", "two")]) == "- `a`, `b`: two"
    assert listed([("OptionError", "soon")], "page.md") == "- [`OptionError`](page.md#optionerror): soon"


def test_what_is_public_needs_a_docstring():
    with pytest.raises(LookupError, match="has no docstring; write one"):
        read(lambda: None)
