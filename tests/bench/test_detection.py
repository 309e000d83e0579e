"""The detection benchmark: what it perturbs, and that a small step's calls are found as its table says."""

import torch

from bench.detection import SIZES, Judged, family_of, judged_calls, off_by, report
from nbkit.capture.diff import opdiff
from nbkit.capture.diff.mode import DiffMode
from nbkit.capture.replay.op_traits import traits_of

aten = torch.ops.aten


def test_every_element_is_off_by_so_many_times_its_rounding():
    x = torch.tensor([3.0, -4.0, 0.0, 0.0])  # their root mean square is 2.5
    error = (off_by(x, 8, torch.Generator()) - x).abs() / (8 * torch.finfo(torch.float32).eps)
    torch.testing.assert_close(error, torch.tensor([5.5, 6.5, 2.5, 2.5]), rtol=0.1, atol=0)
    assert torch.equal(off_by(x.long(), 8, torch.Generator()), x.long())


def test_ops_have_families():
    ops = (aten.mm, aten._softmax, aten.native_layer_norm, aten.mul, aten.convolution, aten.nll_loss_forward, aten.cat)
    families = [family_of(traits_of(getattr(op, op.overloads()[0]))) for op in ops]
    assert families == ["product", "softmax", "norm", "elementwise", "convolution", "loss", "copy"]


def test_larger_errors_of_a_step_are_found_and_right_results_are_not():
    model, x = torch.nn.Linear(20, 30), torch.randn(40, 20)
    before = DiffMode._compare
    judged = judged_calls(lambda: model(x).tanh().square().mean().backward())
    assert DiffMode._compare is before is opdiff.DiffMode._compare
    assert {"aten.addmm.default", "aten.tanh.default", "aten.mm.default"} <= {one.op for one in judged}
    assert not any(one.wrong[0] for one in judged)
    for size in (2, 64):
        assert {one.wrong[size] for one in judged if one.op == "aten.addmm.default"} == {size == 64}


def test_the_table_has_shares_by_family():
    found = Judged("aten.mm.default", "product", "float32", {0: False, **{size: size > 8 for size in SIZES}})
    missed = found._replace(family="norm", wrong=dict.fromkeys((0, *SIZES), False))
    alarm = found._replace(wrong=dict.fromkeys((0, *SIZES), True))
    text = report([found, missed, alarm])
    assert "| all          |     2 | 0% | 0% | 0% |  50% |  50% |  50% |" in text
    assert "| product      |     1 | 0% | 0% | 0% | 100% | 100% | 100% |" in text
    assert "Mismatches without an error: 1." in text
