"""Results that may be NaN or not where another result of the op is NaN: which of the two says nothing."""

import torch
from torch import Tensor

# Position of the logsumexp. Where all scores of a row are NaN, kernels of float32 on the CPU take the row for one that
# is masked out whole, and give 0; those of float64 give NaN.
BESIDE_NAN = {"_scaled_dot_product_flash_attention_for_cpu": 1}


def settled(packet: str, results: list[Tensor], like: list[Tensor]) -> list[Tensor]:
    """The results of an op; where one is NaN or not beside a row that is NaN in both, it is what it is in `like`.

    Nothing is lost: that row of the first result, which it belongs to, is NaN whatever it is.
    """
    index = BESIDE_NAN.get(packet)
    if index is None or [one.shape for one in results] != [one.shape for one in like]:
        return results
    own = results[index]
    first, others = like[0].to(own.device), like[index].to(own.device, own.dtype)
    is_lost = _is_nan_row(results[0]) & _is_nan_row(first)
    results = list(results)
    results[index] = torch.where(is_lost & (own.isnan() != others.isnan()), others, own)
    return results


def _is_nan_row(tensor: Tensor) -> Tensor:
    return tensor.isnan().all(-1)
