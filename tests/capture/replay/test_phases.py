"""Vectors that are right in any phase are turned to those they are compared with, pairs together, and nothing else."""

import pytest
import torch

from nbkit.capture.replay.phases import turned

SVD, EIGH = "_linalg_svd", "_linalg_eigh"


def svd(rows, columns, full_matrices):
    return list(torch.linalg.svd(torch.randn(rows, columns, dtype=torch.complex128), full_matrices=full_matrices))


def phases(count):
    return torch.polar(torch.ones(count, dtype=torch.float64), torch.rand(count, dtype=torch.float64) * 6)


@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (3, 5), (4, 4)])
def test_singular_vectors_are_turned_to_those_they_are_compared_with(rows, columns, full_matrices):
    like = u, values, vh = svd(rows, columns, full_matrices)
    shared = phases(min(rows, columns))
    left = torch.cat([shared, phases(u.shape[-1] - len(shared))])
    right = torch.cat([shared.conj(), phases(vh.shape[-2] - len(shared))])
    found = turned(SVD, [u * left, values, right[:, None] * vh], like)
    assert all(torch.allclose(one, other) for one, other in zip(found, like, strict=True))


@pytest.mark.parametrize("full_matrices", [False, True])
def test_a_vector_that_is_turned_without_its_partner_stays_wrong(full_matrices):
    like = u, values, vh = svd(4, 3, full_matrices)
    wrong = vh * torch.tensor([1.0, 1.0, -1.0])[:, None]
    assert torch.allclose(turned(SVD, [u, values, wrong], like)[2], wrong)


def test_eigenvectors_are_turned_one_by_one_and_values_stay():
    values, vectors = torch.linalg.eigh(torch.randn(4, 4, dtype=torch.float64))
    signs = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    results = [values, own := vectors * signs]
    found = turned(EIGH, results, [values, vectors])
    assert found[0] is values and torch.allclose(found[1], vectors)
    assert results[1] is own


def test_vectors_that_are_wrong_are_turned_and_stay_as_long_as_they_are():
    values, other = torch.ones(2), torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    assert turned(EIGH, [values, -torch.eye(2)], [values, other])[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_results_of_other_ops_and_of_other_shapes_are_left():
    results, like = [torch.randn(2), -torch.ones(2, 2)], [torch.randn(2), torch.ones(2, 2)]
    assert turned("mm", results, like) is results
    assert turned(EIGH, results, [like[0], torch.ones(2, 3)]) is results
