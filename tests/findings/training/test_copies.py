"""Tests what is said of parameters that were copies of each other, on facts made by hand."""

from nbkit.findings.training.facts import Copy
from nbkit.findings.training.updates import SYNC, TIE, parted_copy
from tests.findings.training.audits import audit


def found(*copies):
    return parted_copy(audit({}, {}, copies=copies))


def test_one_pair_in_a_model_is_a_tie_that_was_copied():
    (finding,) = found(Copy("Net", "head.weight", "Net", "embedding.weight"))
    assert (finding.parameter, finding.count, finding.advice) == ("head.weight", 1, TIE)
    assert finding.message.startswith("head.weight and embedding.weight had equal values when the recording began")
    assert finding.evidence == {"parameters": ["head.weight"], "others": ["embedding.weight"]}


def test_replicas_are_one_finding_for_each_pair_of_models():
    pairs = [Copy("Net", name, "Net_2", name) for name in ("a.weight", "a.bias")]
    (finding, other) = found(*pairs, Copy("Net", "a.bias", "Net_3", "a.bias"))
    assert (finding.parameter, finding.count, finding.advice) == (None, 2, SYNC)
    assert "of Net and Net_2 had equal values" in finding.message
    assert (other.parameter, other.count) == ("a.bias", 1)
