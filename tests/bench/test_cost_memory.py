"""opcost predicts the memory of steps of many families: what is saved to the byte, the peak within 1 %."""

import pytest

pytest.importorskip("torch.distributed._tools.mem_tracker")
from bench import cost_memory
from tests.support.installed import needs

pytestmark = needs("transformers")

NAMES = [
    "DeepSeek-V3, MLA and experts", "Mixtral, experts", "Mamba2", "DeBERTa-v2", "T5", "Whisper", "Swin", "ConvNeXt",
    "Gemma 3", "CLIP", "BLOOM, ALiBi", "GRU", "U-Net", "PINN, second derivatives", "linear algebra",
    "attention with dropout", "sample LLaMA", "sample RWKV-4",
]  # fmt: skip
CASES = [(name, [*cost_memory.OPTIMIZERS][number % 4]) for number, name in enumerate(NAMES)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "optimizer"), CASES)
def test_peak_and_saved_bytes(name, optimizer):
    row = cost_memory.measured(name, optimizer)
    assert abs(row.error) <= 0.01
    assert row.saved == row.really_saved > 0


def test_the_report_counts_what_is_within_one_percent():
    right = cost_memory.Row("right", "SGD", 1000, 1000, 1200, 8, 8)
    wrong = cost_memory.Row("wrong", "SGD", 900, 1000, None, 8, 16)
    text = "\n".join(cost_memory.report([right, wrong], {"refused": "CostError: it needs values"}))
    assert "2 models, 2 training steps" in text and "largest 10.00%" in text
    assert "within 1 % in\n1; saved bytes equal to the byte in 1 models" in text
    assert "refused does not run on shapes: CostError" in text


def test_every_family_is_one_of_the_bench():
    assert set(NAMES) <= set(cost_memory.MODELS)
