"""The native look at values sees the one bad value wherever it stands, in every dtype, length and layout."""

import json

import pytest
import torch

import nbkit

LENGTHS = (1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 1000)
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def laid_out(values, layout):
    """Memory of a layout, holding ones, that is as long as `values`."""
    if layout == "sparse in memory":
        return torch.ones(3 * len(values), dtype=values.dtype)[::3]
    if layout == "matrix":
        return torch.ones(2, len(values), dtype=values.dtype).t()[:, 1]
    return torch.ones(len(values), dtype=values.dtype)


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "native")


@pytest.mark.parametrize("layout", ["dense", "sparse in memory", "matrix"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_one_bad_value(length, dtype, layout):
    divisors = torch.ones(4, length, dtype=dtype)
    for divisor, place in zip(divisors, (0, length // 2, length - 1), strict=False):
        divisor[place] = 0
    values = [laid_out(divisor, layout) for divisor in divisors]
    rows = divisors.unbind()
    with nbkit.opcheck() as trace:
        for value, divisor in zip(values, rows, strict=True):
            value.div_(divisor)
    divided = trace.ops.loc[trace.ops["op"] == "aten.div_.Tensor", "op_id"].tolist()
    [finding] = trace.findings.itertuples()
    assert json.loads(finding.evidence)["op_ids"] == divided[:3]  # the fourth is clean


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_one_value_that_did_not_underflow(length, dtype):
    tiny = torch.full((length,), torch.finfo(dtype).tiny, dtype=dtype)
    with nbkit.opcheck() as trace:
        lost = tiny * 0.25
        tiny[-1] = 1
        kept = tiny * 0.25
    multiplied = trace.ops.loc[trace.ops["op"] == "aten.mul.Tensor", "op_id"]
    assert trace.findings["op_id"].tolist() == multiplied.tolist()[:1], (lost, kept)
