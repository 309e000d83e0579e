from nbkit.divergence.runs import has_values, run_of
from nbkit.step.step import Step
from tests.support.fakes import make_ops, make_tensors

ROWS = ((0, "input", 7), (0, "output", 8))


def test_a_run_knows_the_size_of_what_is_in_its_tensors():
    tensors = make_tensors(*ROWS).assign(
        norm=[8.0, None], min=[-3.0, None], max=[1.0, None], dtype=["float32", "int64"]
    )
    read, made = run_of(Step(make_ops({}), tensors)).tensors
    assert (read.tensor_id, read.numel, read.rms, read.extent, read.eps) == (7, 16, 2.0, 3.0, 2.0**-23)
    assert (made.tensor_id, made.name, made.rms, made.extent, made.eps) == (8, None, 0.0, 0.0, 0.0)
    assert has_values(tensors) and not has_values(make_tensors(*ROWS))


def test_calls_have_their_tensors_and_what_has_no_storage_is_told_by_its_number():
    tensors = make_tensors(*ROWS)
    tensors["storage_id"] = tensors["storage_id"].replace(7, None)
    run = run_of(Step(make_ops({"op": "aten.exp.default"}), tensors))
    (call,) = run.calls
    assert [tensor.storage for tensor in (*run.read(call), *run.made(call))] == [-8, 8]
    assert run.texts["op"] == ["aten.exp.default"]
