import pytest

from nbkit.readers.oneflow.text.mojibake import MOST, Mojibake, repaired


@pytest.mark.parametrize(("text", "whole"), [("f\u00c3\u00bcr", "f\u00fcr"), ("f\u00fcr", None), ("plain", None)])
def test_utf8_that_was_read_as_cp1252_is_repaired(text, whole):
    assert repaired(text) == whole


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("\u00c3\u00bc", 1),  # can be repaired
        ("\u00e5\u00bc\ufffd", 1),  # a byte was lost
        ("caf\u00e9", 0),
        ("\u00e9\u00e8", 0),  # signs alone
        ("\u00b5\u00b1", 0),  # no sign
        ("\u00e5\u00bc \u5f00", 0),  # Chinese that was read well
    ],
)
def test_suspect_lines_are_counted(text, count):
    found = Mojibake()
    found.see(1, text)
    assert found.count == count


def test_so_many_lines_are_kept_and_all_are_counted():
    found = Mojibake()
    for number in range(MOST + 1):
        found.see(number, "f\u00c3\u00bcr")
    assert (found.count, found.mended, found.characters, len(found.lines)) == (51, 51, 102, 50)
    assert found.lines[0] == {"line": 0, "text": "f\u00c3\u00bcr", "repaired": "f\u00fcr"}
