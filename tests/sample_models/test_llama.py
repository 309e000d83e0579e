"""The LLaMA sample model: its sizes, its cache, what it learns and what it refuses."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from sample_models.llama import LLAMA_7B, LLAMA_SMALL, LLAMA_TINY, Llama, RMSNorm
from tests.sample_models.models import draw_ids, tiny


def test_the_7b_preset_has_the_parameters_of_llama_7b():
    with torch.device("meta"):
        model = Llama(LLAMA_7B)
    assert sum(parameter.numel() for parameter in model.parameters()) == 6_738_415_616


def test_the_small_preset_is_8_layers_of_width_128():
    assert (LLAMA_SMALL.num_hidden_layers, LLAMA_SMALL.hidden_size) == (8, 128)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("chunks", [[1] * 12, [7, 1, 1, 3], [12]])
def test_decoding_with_the_cache_is_the_full_forward(kv_heads, chunks):
    model, ids = tiny("llama", num_key_value_heads=kv_heads), draw_ids(12)
    cache, parts = None, []
    with torch.no_grad():
        for chunk in ids.split(chunks, dim=1):
            logits, cache = model.decode(chunk, cache)
            parts.append(logits)
        assert_close(torch.cat(parts, dim=1), model(ids), rtol=1e-5, atol=1e-5)
    assert cache[0][0].shape == (2, kv_heads, 12, 8)


def test_a_cache_can_be_continued_twice():
    model, ids = tiny("llama"), draw_ids(6)
    with torch.no_grad():
        _, cache = model.decode(ids[:, :4])
        first, _ = model.decode(ids[:, 4:], cache)
        again, _ = model.decode(ids[:, 4:], cache)
    assert torch.equal(first, again)


def test_rms_norm_is_that_of_torch():
    norm, x = RMSNorm(16, eps=1e-5), torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    torch.nn.init.uniform_(norm.weight)
    assert_close(norm(x), torch.nn.functional.rms_norm(x, (16,), norm.weight, eps=1e-5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 36}, "hidden_size 36 does not give 4 heads of an even size"),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3 key/value heads evenly"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(LLAMA_TINY, **changes)
