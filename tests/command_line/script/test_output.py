"""What a person who waits is told of the traces of a script."""

import io

import pytest

from nbkit.command_line.run import Output
from nbkit.command_line.terminal import Narrator
from nbkit.progress import SWITCH
from tests.support.fakes import fake_trace


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("switch", "told"), [("1", "nbkit: recorded step 7: 1,234 ops; saving\n"), ("0", "")], ids=["on", "off"]
)
def test_a_terminal_is_told_of_each_step_as_it_is_saved(tmp_path, monkeypatch, switch, told):
    monkeypatch.setenv(SWITCH, switch)
    output = Output(tmp_path / "new", Narrator(stream := Terminal()))
    output.keep(fake_trace(1234), 7)
    assert stream.getvalue() == told
    assert output.saved == [tmp_path / "new"]
