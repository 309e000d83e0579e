"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from nbkit.errors import TraceError
from nbkit.trace.atomic_write import writing


def test_what_is_no_regular_file_stays_what_it_is(tmp_path: Path) -> None:
    """As /dev/null would, which somebody with all rights could replace by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(TraceError, match="Cannot write the page to .*pipe: it is there and no regular file; "),
        writing(pipe, "the page") as file,
    ):
        file.write("text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("name", ["page.html", "page.json.gz"])
def test_trouble_on_the_way_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(TraceError, match="no space left"), writing(path, "the page") as file:
        file.write("half of it")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_packed_file_does_not_tell_when_it_was_written_and_all_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    with writing(path, "the trace") as file:
        file.write("{}")
    assert path.read_bytes()[4:8] == bytes(4)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
