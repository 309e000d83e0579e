"""Dropout that draws in eval mode, and models that are trained in it: whole findings."""

from typing import Any

from nbkit.findings.training.facts import Audit
from nbkit.findings.training.rules import audit_findings
from nbkit.schema import MODULES, OPS, TENSORS
from tests.findings.training.audits import op, parameters

HERE = {"model": "Net", "module": "drop", "module_call": 2, "source": "net.py:4"}
COLUMNS = ["rule", "severity", "message", "op_id", "module", "count"]


def findings(
    *ops: dict[str, Any], modes: dict[tuple[str, str, int], bool], modules: Any = (), **more: Any
) -> list[Any]:
    """What is found of a step with these ops; its parameters are all right."""
    counts = dict.fromkeys(("depth", "params", "trainable_params", "param_bytes", "buffer_bytes"), 1)
    rows = [{**counts, **dict(zip(("model", "module", "type", "calls"), row, strict=True))} for row in modules]
    frames = OPS.frame(ops), TENSORS.frame(), MODULES.frame(rows)
    held = parameters(more or {}, {}, {})
    table = audit_findings(Audit(held, *frames, texts={"net.py:4": "F.dropout(x)"}, modes=modes, steps=1))
    return table[COLUMNS].astype(object).where(table[COLUMNS].notna(), None).to_numpy().tolist()


def dropout(name: str = "torch.nn.functional.dropout", **more: Any) -> list[dict[str, Any]]:
    """A call of a function that draws, twice, and a draw of the user."""
    call = op(0, name, "forward", **{**HERE, **more}) | {"level": "api"}
    draws = [op(n, "aten.bernoulli_.float", "forward", parent_id=0, **{**HERE, **more}) for n in (1, 2)]
    return [call, *draws, op(3, "aten.rand.default", "forward", **{**HERE, **more})]


def test_a_dropout_function_in_eval_mode_is_told_once_per_line() -> None:
    message = "aten.bernoulli_ draws random numbers for a dropout of drop in eval mode at net.py:4: `F.dropout(x)`"
    expected = [["dropout_in_eval", "warning", message, 1, "drop", 2]]
    assert findings(*dropout(), modes={("Net", "drop", 2): False}) == expected
    for name in ("torch.dropout", "torch.dropout_", "torch.feature_dropout", "torch.nn.functional.dropout2d"):
        assert findings(*dropout(name), modes={("Net", "drop", 2): False}) == expected


def test_the_root_has_no_name_in_the_sentence() -> None:
    ((_, _, message, *_),) = findings(*dropout(module=""), modes={("Net", "", 2): False})
    assert message == "aten.bernoulli_ draws random numbers for a dropout in eval mode at net.py:4: `F.dropout(x)`"


def test_dropout_in_training_or_in_no_module_and_other_draws_are_right() -> None:
    assert findings(*dropout(), modes={("Net", "drop", 2): True}) == []
    assert findings(*dropout(), modes={("Net", "drop", 1): False}) == []
    assert findings(*dropout(module_call=None), modes={("Net", "drop", 0): False}) == []
    assert findings(*dropout(model=None, module=None), modes={("Net", "drop", 2): False}) == []
    assert findings(*dropout("torch.nn.functional.gumbel_softmax"), modes={("Net", "drop", 2): False}) == []
    backward = [{**row, "phase": "backward"} for row in dropout()]
    assert findings(*backward, modes={("Net", "drop", 2): False}) == []


BACKWARD = op(0, "aten.mm.default", "backward")
NET, DROP, NORM = ("Net", "", "Net", 1), ("Net", "drop", "Dropout", 2), ("Net", "norm", "BatchNorm1d", 1)
EVAL = {("Net", "", 0): False, ("Net", "drop", 0): True, ("Other", "", 0): True}


def test_a_model_that_is_trained_in_eval_mode_is_told_with_its_layers() -> None:
    message = "The optimizer trains Net in eval mode, in which its Dropout, BatchNorm1d layers are off"
    assert findings(BACKWARD, modes=EVAL, modules=[NET, DROP, NORM]) == [
        ["trained_in_eval", "hint", message, None, None, 2]
    ]


def test_eval_mode_that_changes_nothing_is_right() -> None:
    assert findings(BACKWARD, modes={**EVAL, ("Net", "", 1): True}, modules=[NET, DROP]) == []
    assert findings(BACKWARD, modes={}, modules=[NET, DROP]) == []
    assert findings(BACKWARD, modes=EVAL, modules=[NET, ("Net", "fc", "Linear", 2)]) == []
    assert findings(BACKWARD, modes=EVAL, modules=[NET, ("Net", "drop", "Dropout", 0)]) == []
    assert findings(BACKWARD, modes=EVAL, modules=[NET, ("Other", "drop", "Dropout", 1)]) == []
    assert findings(op(0, "aten.mm.default", "forward"), modes=EVAL, modules=[NET, DROP]) == []
