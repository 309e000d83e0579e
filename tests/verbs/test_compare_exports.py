"""compare_exports: a row for each export of a model."""

import copy

import pytest
import torch

import nbkit
from nbkit.errors import OptionError


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))


X = torch.linspace(-1, 1, 18).reshape(3, 6)


def test_each_export_has_a_row_and_each_failure_its_reason(tmp_path):
    other = copy.deepcopy(model())
    other[1] = torch.nn.ReLU()
    table = nbkit.compare_exports(model(), ["export", other, torch.nn.Linear(5, 4)], inputs=X, dump=tmp_path / "graphs")
    assert table["export"].tolist() == ["export", "Sequential", "Linear"]
    assert table["verdict"].tolist() == ["agrees", "diverges", "not known"]
    assert table["first_divergence"].isna().tolist() == [True, False, True]
    assert table["first_divergence"][1].startswith("gelu: ")
    assert table["output_error"][0] < 1e-6 < 1e-3 < table["output_error"][1]
    assert table["error"].isna().tolist() == [True, True, False]
    assert (table["op_count"][0], table["different_count"][0]) == (5, 0)  # two permutes, two addmm, gelu
    assert (tmp_path / "graphs" / "export" / "model.pt2").is_file()


def test_what_cannot_be_exported_is_a_row_with_its_reason():
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)

    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    table = nbkit.compare_exports(Branching(), ["onnx", "export"], inputs=X)
    assert table["error"].str.contains("cannot be exported by torch.export|cannot export Branching").all()
    assert (table["verdict"] == "not run").all() and table["export"].tolist() == ["onnx", "export"]


@pytest.mark.parametrize(
    ("exports", "message"),
    [
        ("onnx", "exports is 'onnx'; give a list of what to compare, such as"),
        ([], "give a list of what to compare"),
        (["onxx"], "there is no file or folder 'onxx'; give a model"),
    ],
)
def test_what_is_no_export_is_refused_before_anything_runs(exports, message):
    with pytest.raises(OptionError, match=message):
        nbkit.compare_exports(model(), exports, inputs=X)
