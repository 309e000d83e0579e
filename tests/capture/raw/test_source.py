"""Tests source lines: the innermost user line that led to an op, relative to the working directory, also backward."""

import linecache
from sys import _getframe

import IPython
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

from nbkit.capture.raw.source import is_user_code, line_of, location_text
from tests.capture.helper import doubled
from tests.capture.models import aten, record


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


def f1(x):
    return f2(x)


def f2(x):
    return f3(x)


def f3(x):
    y = x.exp()
    return y.sum()


def line(function, offset):
    return f"tests/capture/raw/test_source.py:{function.__code__.co_firstlineno + offset}"


def test_nested_functions_show_the_innermost_line():
    x = torch.ones(2, requires_grad=True)
    trace = record(lambda: f1(x).backward())
    assert aten(trace, "aten.exp")["source"].tolist() == [line(f3, 1)]
    assert aten(trace, "aten.sum")["source"].tolist() == [line(f3, 2)]
    assert aten(trace, "aten.expand")["source"].tolist() == [line(f3, 2)]  # backward: of its forward op
    assert aten(trace, "aten.mul")["source"].tolist() == [line(f3, 1)]


def test_a_helper_in_another_file_is_named():
    trace = record(lambda: doubled(torch.ones(2)))
    first = doubled.__code__.co_firstlineno
    assert aten(trace, "aten.mul")["source"].tolist() == [f"tests/capture/helper.py:{first + 1}"]
    assert aten(trace, "aten.relu")["source"].tolist() == [f"tests/capture/helper.py:{first + 2}"]


def test_modules_of_torch_show_the_line_that_called_them():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def step():
        return model(torch.ones(1, 2))

    trace = record(step)
    assert set(trace.ops["source"]) == {line(step, 1)}


def test_a_line_of_a_library_has_the_users_own_above_it(tmp_path):
    path = tmp_path / "site-packages" / "shop" / "layers.py"
    code = compile("def twice(x):\n    return x * 2\n", str(path), "exec")
    exec(code, library := {})

    def step():
        x = torch.ones(2, requires_grad=True)
        y = library["twice"](x)
        y.sum().backward()

    trace = record(step)
    lines = aten(trace, "aten.mul")[["source", "own_source"]].values.tolist()
    assert lines == [[f"{path}:2", line(step, 2)]] * 2  # the second is the backward pass
    assert aten(trace, "aten.sum")["own_source"].isna().all()
    assert line(step, 2) in trace.lines["source"].tolist()


def test_files_outside_the_working_directory_keep_their_whole_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = record(lambda: doubled(torch.ones(2)))
    assert aten(trace, "aten.mul")["source"].iloc[0].startswith(doubled.__code__.co_filename)


def test_optimizer_ops_show_the_line_of_the_step():
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()

    def step():
        optimizer.step()

    assert set(record(step).ops["source"]) == {line(step, 1)}


def test_code_without_a_file_is_named_as_it_calls_itself():
    code = compile("import torch\n\ny = torch.ones(2) + 1", "<cell of a test>", "exec")
    trace = record(lambda: exec(code, {}))
    assert aten(trace, "aten.add")["source"].tolist() == ["<cell of a test>:3"]


def test_a_cell_is_named_by_its_number(monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    cell = "import torch\n\ny = torch.ones(2) + 1"
    code = compile(cell, shell.compile.cache(cell, 7), "exec")
    trace = record(lambda: exec(code, {}))
    assert aten(trace, "aten.add")["source"].tolist() == ["Cell In[7], line 3"]


def test_torch_and_the_recorder_are_not_user_code():
    assert not is_user_code(nn.Linear.forward.__code__)
    assert not is_user_code(location_text.__code__)
    assert not is_user_code(linecache.getline.__code__)
    assert is_user_code(f1.__code__)
    assert is_user_code(pytest.raises.__code__)


def test_the_text_of_a_place():
    frame = _getframe()
    assert location_text((frame.f_code, frame.f_lasti)) == line(test_the_text_of_a_place, 2)


def test_an_instruction_without_a_line_stands_on_the_first_one():
    code = f3.__code__
    assert line_of(code, len(code.co_code) + 2) == code.co_firstlineno
    assert line_of(code, len(code.co_code) - 2) == code.co_firstlineno + 2
