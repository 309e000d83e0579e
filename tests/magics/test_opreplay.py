"""In a real kernel: `%%opcapture` saves the calls of a cell, `%opreplay` runs them again."""

import pytest


@pytest.fixture(scope="module")
def calls(kernel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("captured") / "my calls"
    reply = kernel.run(f"%%opcapture --folder '{folder}' -o saved\n(x @ x).add(1)")
    assert reply.status == "ok", reply.error
    return folder


def shown(kernel, code: str) -> str:
    reply = kernel.run(code)
    assert reply.status == "ok", reply.error
    return reply.outputs[-1][1]


def test_a_cell_is_captured_and_replayed(kernel, calls):
    assert shown(kernel, "saved.meta['captured_calls']") == "2"
    assert "\n\nopreplay my calls" in shown(kernel, f"%opreplay '{calls}'")
    kernel.run(f"%opreplay -q '{calls}' --ops dot -o again")
    assert shown(kernel, "again.meta['identical_calls'], again is _opreplay, list(again.ops['op'])") == (
        "(1, True, ['aten.dot.default'])"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "FOLDER is missing."),
        ("absent", "There is no "),
        ("{calls} --repeats 0", "repeats must be a whole number from 1 to "),
    ],
)
def test_a_bad_line_says_what_is_wrong(kernel, calls, line, message):
    reply = kernel.run(f"%opreplay {line.format(calls=repr(str(calls)))}")
    assert reply.status == "error" and message in reply.error[1]


def test_a_cell_without_a_folder_does_not_run(kernel):
    kernel.run("ran = False")
    reply = kernel.run("%%opcapture\nran = True")
    assert reply.status == "error" and "--folder is missing" in reply.error[1]
    assert shown(kernel, "ran") == "False"


def test_only_takes_the_name_of_a_trace(kernel, tmp_path):
    kernel.run("import torch\nlow = torch.full((4, 4), 70000.0)")
    kernel.run("%%opcheck -q -o checked\nlow.half().sum(); (x @ x).add(1)")
    reply = kernel.run(
        f"%%opcapture -q --folder '{tmp_path / 'only'}' --only checked -o few\nlow.half().sum(); (x @ x).add(1)"
    )
    assert reply.status == "ok", reply.error
    assert (
        shown(
            kernel, "0 < len(few.captures) < len(checked.ops), set(few.captures['op']) <= set(checked.findings['op'])"
        )
        == "(True, True)"
    )
    reply = kernel.run(f"%%opcapture --folder '{tmp_path / 'none'}' --only absent\nx.sum()")
    assert reply.status == "error" and "there is no 'absent'" in reply.error[1]
