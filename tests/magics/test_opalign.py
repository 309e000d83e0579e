"""In a real kernel: what `%opalign` shows and stores, and what a bad line does."""

import pytest

MODEL = """\
import copy, nbkit, torch
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
other = copy.deepcopy(model)
x = torch.ones(1, 2)
"""


@pytest.fixture(scope="module", autouse=True)
def model(kernel):
    kernel.run("%unload_ext nbkit\n%load_ext nbkit\n" + MODEL)


def shown(kernel, code: str) -> str:
    reply = kernel.run(code)
    assert reply.status == "ok", reply.error
    return reply.outputs[-1][1]


def test_two_models_are_aligned_and_stored(kernel):
    assert "\n\nopalign " in shown(kernel, "%opalign model other --inputs x")
    kernel.run("%opalign -q model other --inputs x --name both -o found")
    text = shown(kernel, "found.meta['name'], found is _opalign, found.meta['first_divergence']")
    assert text == "('both', True, None)"


def test_inputs_may_stand_in_one_name_and_sides_in_saved_traces(kernel, tmp_path):
    for held in ("(x,)", "[x]", "{'input': x}"):
        assert kernel.run(f"given = {held}\n%opalign -q model other --inputs given -o found").status == "ok"
        assert shown(kernel, "found.meta['first_divergence'], found.meta['error']") == "(None, None)"
    folder = tmp_path / "my step"
    kernel.run(f"with nbkit.optrace(values='stats') as step:\n    model(x)\nstep.save({str(folder)!r})")
    assert kernel.run(f"%opalign -q '{folder}' step -o found").status == "ok"
    text = shown(kernel, "[found.meta[side]['origin'] for side in ('left', 'right')], found.meta['first_divergence']")
    assert text == "(['trace', 'trace'], None)"


def test_parameters_are_copied_first(kernel):
    kernel.run("other[0].weight.data.zero_()\n%opalign -q model other --inputs x --copy-parameters -o found")
    assert shown(kernel, "torch.equal(model[0].weight, other[0].weight), len(found.meta['copied'])") == "(True, 2)"


def test_the_right_side_may_have_inputs_of_its_own(kernel):
    kernel.run("y = x + 1\n%opalign -q model model --inputs x --right-inputs y -o found")
    assert shown(kernel, "found.meta['first_divergence'] is None") == "False"
    kernel.run("%opalign -q model model --inputs x --right-inputs x -o found")
    assert shown(kernel, "found.meta['first_divergence'] is None") == "True"


def test_pairs_are_shown_as_text_and_the_trace_is_stored(kernel):
    text = shown(kernel, "%opalign model other --inputs x --pairs -o found")
    assert text.startswith("000 = | INPUT") and " | a=0 r=0" in text
    assert shown(kernel, f"nbkit.side_by_side_text(found) == {text!r}") == "True"


def test_several_right_sides_are_one_table(kernel):
    text = shown(kernel, "%opalign model export compile --inputs x -o found")
    assert "verdict" in text and "compile" in text
    rows = shown(kernel, "found[['export', 'verdict']].to_numpy().tolist()")
    assert rows == "[['export', 'agrees'], ['compile', 'agrees']]"


def test_quiet_shows_nothing_and_help_runs_nothing(kernel):
    assert kernel.run("%opalign -q model other --inputs x").outputs == []
    assert "usage: %opalign" in shown(kernel, "%opalign --help")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "LEFT, RIGHT are missing."),
        ("modle other", "there is neither a name 'modle' in this notebook nor such a file; did you mean 'model'?"),
        ("model other --inputs z", "there is no 'z' in this notebook, which --inputs names"),
        ("model onnx export --inputs x --pairs", "--pairs is for one right side, and 2 are given; leave it out."),
        ("model other --inputs x --opset 20", "opset=20 is that of an export"),
        ("model onnx --inputs x --opset new", "'new' is not a whole number"),
        ("model other --inputs x --dump new", "dump writes the graphs that the left model is turned into"),
        ("model other --inputs x --right-inputs z", "there is no 'z' in this notebook, which --right-inputs names"),
    ],
)
def test_a_bad_line_is_one_red_line(kernel, line, message):
    reply = kernel.run(f"%opalign {line}")
    ((kind, text),) = reply.outputs
    assert (reply.status, reply.error[0], kind) == ("error", "UsageError", "stderr")
    assert text.startswith("UsageError: %opalign: ") and message in text
    assert text.count("\n") == 1
