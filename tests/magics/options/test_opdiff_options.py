"""In a real kernel: what the options of `%%opdiff` do, and what a bad one does."""

import pytest


def test_a_cell_is_compared_and_keeps_its_value(kernel):
    reply = kernel.run("%%opdiff -o found --ops exp\nx.exp() * 0")
    assert [kind for kind, _ in reply.outputs] == ["display", "value"]
    assert kernel.value("found is _opdiff, found.diffs['op'].tolist(), found.diffs['status'].tolist()") == (
        True,
        ["aten.exp.default"],
        ["ok"],
    )


def test_options_reach_the_recorder(kernel):
    kernel.run("%%opdiff -q -o few --reference cpu:float32 --sample 2 --threshold 5 --name run\n(x * 2, x * 3, x * 4)")
    assert kernel.value("few.meta['reference'], few.meta['threshold'], few.meta['name']") == ("cpu:float32", 5.0, "run")
    assert kernel.value("len(few.diffs[few.diffs['op'] == 'aten.mul.Tensor'])") == 2


def test_values_are_kept_as_asked(kernel):
    kernel.run("%%opdiff -q -o kept --keep 3 --keep-bytes 200 --keep-ops exp\n(x.exp(), x.exp(), x.sin())")
    limits = {name: kernel.value(f"kept.meta['captured'][{name!r}]") for name in ("keep", "keep_bytes", "calls")}
    assert limits == {"keep": 3, "keep_bytes": 200, "calls": kernel.value("len(kept.captured)")}
    assert kernel.value("{call.op for call in kept.captured.values()}") == {"aten.exp.default"}


def test_a_cell_beside_another_run_shows_where_they_diverge(kernel):
    reply = kernel.run("%%opdiff --against cpu:float64 -o both\nx.exp().sum()")
    assert "where the step and cpu:float64 diverge" in "".join(text for _, text in reply.outputs)
    assert kernel.value("both.meta['against'], set(both.diffs['error_class'])") == ("cpu:float64", {"clean"})


def test_a_cell_is_put_beside_a_saved_trace(kernel, tmp_path):
    kernel.run(f"%%optrace -q --values stats --save '{tmp_path / 'before'}'\nx.exp().sum()")
    kernel.run(f"%%opdiff -q -o now --against '{tmp_path / 'before'}'\nx.sin().sum()")
    assert kernel.value("now.meta['first_divergence']['op']") == "aten.sin.default"


def test_help_names_the_other_runs(kernel):
    text = "".join(text for _, text in kernel.run("%%opdiff --help\n").outputs)
    assert "--against NAME" in text and "cpu:same" in text


def test_a_cell_of_views_says_why_nothing_was_compared(kernel):
    reply = kernel.run("%%opdiff\ny = x.view(-1)")
    assert "No op was compared" in "".join(text for _, text in reply.outputs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--phases bakward", "did you mean 'backward'"),
        ("--reference gpu", "reference='gpu' cannot be used"),
        ("--against gpu", "against='gpu' is neither a saved trace nor a device that can be used"),
        ("--sample 0", "sample=0 is neither"),
        ("--sample x", "argument --sample: 'x' is not a number; write it in digits, such as 8 or 0.5."),
        ("--max-bytes 1G", "argument --max-bytes: '1G' is not a whole number; write it in digits"),
        ("--threshold x", "argument --threshold: 'x' is not a number; write it in digits, such as 8 or 0.5."),
        ("--keep -1", "keep must be a number of calls, got -1"),
    ],
)
def test_a_bad_option_fails_the_cell_before_it_runs(kernel, options, message):
    reply = kernel.run(f"%%opdiff {options}\nran = True")
    assert (reply.status, reply.error[0]) == ("error", "UsageError")
    assert message in reply.outputs[0][1]
    assert kernel.value("'ran' in globals()") is False
