"""Vectors that are right whatever their sign or phase: eigenvectors and singular vectors."""

import torch
from torch import Tensor

# Position of the vectors (as columns) among the results, and of those (as rows) that turn the other way with them.
COLUMNS = {"linalg_eig": 1, "_linalg_eigh": 1, "_linalg_svd": 0}
ROWS = {"_linalg_svd": 2}


def turned(packet: str, results: list[Tensor], like: list[Tensor]) -> list[Tensor]:
    """The results of an op with each vector in the phase that comes nearest to `like`, the same results elsewhere.

    A pair of singular vectors is turned together, so that their product stays what it is.
    """
    index = COLUMNS.get(packet)
    if index is None or [one.shape for one in results] != [one.shape for one in like] or not results[index].numel():
        return results
    results = list(results)
    phase = _phase(results[index], like[index], -2)
    results[index] = results[index] * phase
    if packet in ROWS:
        rows = ROWS[packet]
        own = _phase(results[rows], like[rows], -1)
        shared = min(phase.shape[-1], own.shape[-2])
        own[..., :shared, :] = phase[..., :, :shared].mT.conj_physical()
        results[rows] = results[rows] * own
    return results


def _phase(vectors: Tensor, like: Tensor, dim: int) -> Tensor:
    """The factors of size 1 that bring vectors along `dim` nearest to others."""
    # A lazy conj() is lost in a dispatch mode, where torch has already passed the key that resolves it.
    product = (vectors.conj_physical() * like.to(vectors.device, vectors.dtype)).sum(dim, keepdim=True)
    size = product.abs()
    return torch.where((size > 0) & torch.isfinite(size), product / size, torch.ones_like(product))
