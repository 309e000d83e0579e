"""What was looked at in a step, what came of it, and what is said where nothing could be looked at."""

from threading import Thread

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import nbkit
from nbkit.schema import DIFFS
from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import Brief, brief_of
from nbkit.views.statements.statement import Link, words_text
from nbkit.views.statements.subjects import SUBJECTS
from tests.support.fakes import make_tensors, make_trace, small_trace


def result(verb: str, trace: Trace) -> str | None:
    (subject,) = (one for one in SUBJECTS if one.look is not None and one.look.verb == verb)
    statements = subject.told(trace) if subject.is_of(trace) else None
    return None if statements is None else " ".join(words_text(words) for one in statements for words in one.sentences)


def told(brief: Brief) -> list[str]:
    return [words_text(words) for words in brief.verdict]


def audited(model, optimizer=None, is_detached=False):
    with nbkit.opaudit() as trace:
        z = model[0](torch.ones(2, 3))
        model[1](z.detach() if is_detached else z).sum().backward()
        if optimizer is not None:
            optimizer.step()
    return trace


def two_layers():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    return model, torch.optim.SGD(model.parameters(), 0.1)


def test_a_clean_audit_says_what_was_looked_at():
    trace = audited(*two_layers())
    text = "4 parameters of Sequential: all got a gradient and moved."
    brief = brief_of(trace)
    assert (brief.tone, told(brief)) == ("good", ["Nothing wrong found.", text])
    assert text in trace.summary()


def test_an_audit_with_findings_counts_what_got_a_gradient_and_moved():
    trace = audited(*two_layers(), is_detached=True)
    brief = brief_of(trace)
    said = ["1 warning.", "4 parameters of Sequential: 2 of 4 got a gradient and 2 of 4 moved."]
    assert (brief.tone, told(brief)) == ("bad", said)
    (entry,) = brief.entries
    assert entry.what.startswith("0 (2 tensors) get no gradient; the graph is cut by aten.detach at ")
    # The message has the line.
    assert entry.what.count("z.detach() if") == 1 and "z.detach()" not in entry.where


def test_frozen_parameters_and_steps_that_did_not_run_are_told():
    model, optimizer = two_layers()
    assert result("opaudit", audited(model)).endswith("all got a gradient, no optimizer stepped.")
    model.zero_grad()
    model[0].requires_grad_(False)
    expected = "4 parameters of Sequential, 2 of them frozen: all 2 trainable got a gradient and moved."
    assert result("opaudit", audited(model, optimizer)) == expected
    with torch.no_grad():
        optimizer.zero_grad()
        with nbkit.opaudit() as trace:
            model(torch.ones(1, 3))
    assert result("opaudit", trace).endswith("frozen: no gradient was computed.")
    model.requires_grad_(False)
    with nbkit.opaudit() as trace:
        model(torch.ones(1, 3))
    assert result("opaudit", trace) == "4 parameters of Sequential: all are frozen."
    with torch.no_grad(), nbkit.opaudit() as trace:
        model(torch.ones(1, 3))
        for parameter in model.parameters():  # as an average of another model's
            parameter.mul_(2)
    assert result("opaudit", trace) == "4 parameters of Sequential: all are frozen, and all moved."


def test_a_learning_rate_of_zero_and_gradients_that_are_gone_are_told():
    model, optimizer = two_layers()
    optimizer.param_groups[0]["lr"] = 0.0  # the first step of a warm-up: no finding
    trace = audited(model, optimizer)
    assert result("opaudit", trace).endswith("all got a gradient and none of 4 moved; the learning rate of all is 0.")
    assert not len(trace.findings)
    optimizer.zero_grad()
    optimizer.param_groups = [{**optimizer.param_groups[0], "lr": 0.1}]
    model[1].requires_grad_(False)
    model[1].bias.requires_grad_(True)
    assert result("opaudit", audited(model, optimizer)).endswith(
        "1 of them frozen: all 3 trainable got a gradient and moved."
    )
    with nbkit.opaudit() as trace:
        model(torch.ones(1, 3)).sum().backward()
        optimizer.zero_grad()
        optimizer.step()
    assert trace.findings["rule"].tolist() == ["cleared_gradient", "frozen_parameter"]
    assert result("opaudit", trace).endswith("1 of them frozen: none had a gradient when the optimizer stepped.")


def test_a_model_that_no_optimizer_holds_is_not_said_to_have_missed_its_steps():
    teacher, model = nn.Linear(3, 3), nn.Linear(3, 3)
    optimizer, x = torch.optim.SGD(model.parameters(), 0.1), torch.ones(2, 3)
    with nbkit.opaudit() as trace:
        with torch.no_grad():
            wanted = teacher(x)
        nn.functional.mse_loss(model(x), wanted).backward()
        optimizer.step()
    words = result("opaudit", trace) or ""
    assert "2 parameters of Linear: none had a gradient at the end, and no optimizer holds them" in words
    assert "when the optimizer stepped" not in words


NOT_AUDITED = "Not audited: no module ran in the recording, and parameters outside modules are not looked at."


def test_an_audit_of_nothing_says_so_and_finds_nothing_right():
    with nbkit.opaudit() as trace:
        torch.ones(2).exp()
    brief = brief_of(trace)
    assert brief.tone == ""
    assert told(brief) == [NOT_AUDITED]
    assert [look.verb for look in brief.missing] == ["opcheck", "opdiff", "optime"]


def test_a_doctor_says_what_it_could_not_look_at():
    weight, x = torch.ones(2, 2, requires_grad=True), torch.ones(1, 2)
    with nbkit.opdoctor() as trace:
        (x @ weight).sum().backward()
    # On a loaded machine so small a step may get a hint about its time.
    assert set(trace.findings["severity"]) <= {"hint"}
    brief = brief_of(trace)
    first = "No errors and no warnings." if len(trace.findings) else "Nothing wrong found."
    assert (told(brief)[0], told(brief)[-1]) == (first, NOT_AUDITED)
    assert [look.verb for look in brief.missing] == ["opdiff"]


def test_what_ran_in_other_threads_is_said_to_be_unknown():
    layer = nn.Linear(2, 2)
    with nbkit.opdoctor() as trace:
        torch.ones(1).exp()
        (thread := Thread(target=layer, args=(torch.ones(1, 2),))).start()
        thread.join()
    assert told(brief_of(trace))[-1] == (
        "Not seen: module calls in 1 other thread, whose ops are not recorded: record inside the thread, or use "
        "optrace(threads='all')."
    )


def test_gradients_without_values_are_not_said_to_be_none():
    with torch.device("meta"):
        layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    with nbkit.opaudit() as trace:
        layer(x).sum().backward()
    assert layer.weight.grad is not None
    assert result("opaudit", trace) == "2 parameters of Linear: their gradients cannot be read."


def test_results_that_are_nan_on_both_sides_are_told():
    layer = nn.Linear(2, 2)
    layer.weight.data.fill_(torch.nan)
    with nbkit.opdiff() as trace:
        layer(torch.ones(1, 2)).exp()
    whole = "3 compared tensors: none is further from cpu than rounding allows."
    assert result("opdiff", trace) == f"{whole} 2 of them hold NaN, as on cpu: opcheck finds where it begins."


@pytest.mark.parametrize(("is_cut", "got"), [(True, "2 of 4"), (False, "all")])
def test_a_gradient_of_an_earlier_cell_is_none_that_a_parameter_got(is_cut, got):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer, x = torch.optim.SGD(model.parameters()), torch.ones(1, 2)
    model(x).sum().backward()
    with nbkit.opaudit() as trace:
        hidden = model[0](x)
        model[1](hidden.detach() if is_cut else hidden).sum().backward()
        optimizer.step()
    moved = "all moved" if is_cut else "moved"
    assert result("opaudit", trace).endswith(f"4 parameters of Sequential: {got} got a gradient and {moved}.")


def test_many_models_are_counted():
    models = [nn.Linear(2, 2) for _ in range(7)]
    with nbkit.opaudit() as trace:
        for model in models:
            model(torch.ones(1, 2)).sum().backward()
    assert result("opaudit", trace).endswith("; 2 more models.")


def test_a_check_says_how_much_it_saw_of_masks_and_of_what_was_thrown_away():
    def checked(step):
        with nbkit.opcheck() as trace:
            step()
        return result("opcheck", trace)

    began = "In 2 results no NaN, Inf or underflow began."
    assert checked(lambda: torch.ones(2).exp()) == began
    assert checked(lambda: torch.full((2,), -torch.inf)).endswith(
        "began. 1 of them contains NaN or Inf constants that are expected, such as the -Inf of a mask."
    )
    assert checked(lambda: torch.zeros(2).log().long()) == (
        f"{began} 1 op made NaN or Inf that nothing keeps: a mask took it out, or only integers were made of it."
    )
    assert checked(lambda: None) is None
    assert checked(lambda: torch.zeros(2).log()) == "2 results checked for NaN, Inf and underflow."


def test_a_check_of_nothing_and_one_that_ended_early_do_not_say_that_all_is_well():
    assert told(brief_of(small_trace(verb="opcheck"))) == ["Not checked: no result was examined."]
    early = brief_of(small_trace(verb="opcheck", checked_tensors=3, complete=False))
    assert told(early)[0] == "Nothing wrong found until then."


def compared(*rows: tuple[int, str, float]) -> Trace:
    base = {"op": "aten.mm.default", "module": "fc", "phase": "backward", "role": "output", "position": 0}
    made = [
        {**base, "op_id": op, "dtype": "float32", "status": status, "noise_ratio": ratio} for op, status, ratio in rows
    ]
    trace = small_trace(verb="opdiff", reference="cpu:float64")
    trace.frames["diffs"] = DIFFS.frame(made)
    return trace


def test_compared_tensors_are_counted_without_those_that_were_skipped():
    fine = compared((1, "ok", 1.0), (2, "skipped", np.nan))
    assert result("opdiff", fine) == "1 compared tensor: none is further from cpu:float64 than rounding allows."
    wrong = compared((1, "ok", 1.0), (2, "mismatch", 20.0), (3, "mismatch", 45.5), (6, "failed", np.nan))
    assert result("opdiff", wrong) == (
        "3 of 4 compared tensors differ from cpu:float64 by more than rounding allows, or could not be compared."
    )
    assert told(brief_of(compared((2, "skipped", np.nan)))) == ["Not compared: no tensor was compared."]


def test_fewer_bits_than_the_dtype_has_are_told_though_they_are_no_error():
    trace = compared((1, "ok", 1.0), (2, "reduced", 69.2), (3, "ok", 1.0))
    trace.frames["diffs"]["message"] = [
        None,
        "as exact as one running sum in float32 of 9 numbers is, and no more",
        None,
    ]
    assert told(brief_of(trace)) == [
        "Nothing wrong found.",
        "3 compared tensors: 2 are as near to cpu:float64 as rounding allows. 1 result has less precision than the "
        "dtype (reduced): aten.mm.default, 69.2x the rounding error; not counted as an error: as exact as one running "
        "sum in float32 of 9 numbers is, and no more.",
    ]
    two = compared((1, "reduced", 3.0), (2, "reduced", 9.0))
    assert "2 results have less precision than the dtype (reduced): aten.mm.default, 9x the" in result("opdiff", two)
    assert "9x the rounding error and 1 other; not counted as an error." in result("opdiff", two)


def test_a_timing_answers_where_the_time_goes_and_does_not_say_that_the_step_is_right():
    brief = brief_of(small_trace(verb="optime"))
    (sentence,) = told(brief)
    assert (brief.tone, sentence[:28]) == ("", "94.0 µs per step (one run): ")
    assert told(brief_of(make_trace(small_trace().ops.head(1), verb="optime"))) == ["Not timed: no op ran."]


def with_counts(nan: list[int], inf: list[int]) -> Brief:
    """Ops 1, 2 and 3 with a result each, of so many NaN and Inf; op 2 reads a NaN."""
    tensors = make_tensors((1, "output", 1), (2, "output", 2), (3, "output", 3), (2, "input", 9))
    counts = {"nan_count": pd.array([*nan, 5], "Int64"), "inf_count": pd.array([*inf, 0], "Int64")}
    return brief_of(make_trace(small_trace().ops, tensors.assign(**counts)))


def test_values_that_were_read_are_judged_by_their_nan_and_inf():
    found = with_counts([0, 0, 7], [0, 2, 2])
    assert (found.tone, told(found)) == ("bad", [
        "1 of 3 results holds NaN, first that of aten.sum.default outside modules, forward (train.py:9).",
        "2 of 3 results hold Inf, first that of aten.relu.default in (root), forward (train.py:8).",
    ])  # fmt: skip
    links = [part for words in found.verdict for part in words if isinstance(part, Link)]
    assert links == [Link("aten.sum.default", "op_table", 3), Link("aten.relu.default", "op_table", 2)]
    # A mask is made of Inf.
    assert with_counts([0, 0, 0], [0, 2, 2]).tone == ""
    fine = with_counts([0, 0, 0], [0, 0, 0])
    assert (fine.tone, told(fine)) == (
        "good",
        ["Nothing wrong found.", "No NaN and no Inf in the 3 results whose values were read."],
    )


def test_what_cannot_be_read_is_told_beside_what_got_a_gradient():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1, device="meta"))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit(model=model) as trace:
        model[1](torch.ones(2, 3, device="meta")).sum().backward()
        model[0](torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert result("opaudit", trace).split(": ", 1)[1] == (
        "2 of 4 (2 cannot be read) got a gradient and 2 of 4 moved; whether 2 moved cannot be read."
    )
    with nbkit.opaudit(model=model[1]) as trace:
        model[1](torch.ones(2, 3, device="meta"))
    assert result("opaudit", trace).endswith(": their gradients cannot be read.")


def test_where_no_change_can_be_read_none_is_denied():
    model = nn.Linear(2, 2, device="meta")
    with nbkit.opaudit() as trace:
        model(torch.ones(1, 2, device="meta")).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
    trace.frames["parameters"]["gradient"] = ["finite"] * 2
    assert result("opaudit", trace).endswith(": all got a gradient; whether they moved cannot be read.")


def test_frozen_parameters_that_move_are_counted_apart():
    model, optimizer = two_layers()
    average = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)).requires_grad_(False)
    both = nn.ModuleList([model, average])
    with nbkit.opaudit(model=both) as trace, torch.no_grad():
        with torch.enable_grad():
            model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        for mine, other in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(other, 0.5)
    told = "8 parameters of ModuleList, 4 of them frozen: all 4 trainable got a gradient and moved; 4 frozen moved."
    assert result("opaudit", trace) == told


def test_parameters_of_an_optimizer_that_no_module_holds_are_said_to_be_left_out():
    model, scale = nn.Linear(3, 1), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), scale], 0.1)
    with nbkit.opaudit() as trace:
        (model(torch.ones(2, 3)) * scale).sum().backward()
        optimizer.step()
    left_out = "1 further parameter that an optimizer steps is in no module that was looked at."
    assert result("opaudit", trace) == f"2 parameters of Linear: all got a gradient and moved; {left_out}"
