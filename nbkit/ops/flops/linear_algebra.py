"""Counts the operations of matrix factorizations and of Fourier transforms.

Factorizations count the leading terms of Golub and Van Loan, Matrix Computations (4th edition), which LAPACK's counts
(LAWN 41) share, for m x n matrices with m >= n after an eventual transposition. What iterates (eigenvalues, singular
values) counts as it converges as a rule. A Fourier transform of N points counts 5 N log2 N, of real numbers half.
"""

from collections.abc import Sequence
from math import log2, prod
from typing import Any

from nbkit.ops.flops.products import Formula, Shape, under


def _stacks(first: Shape, second: Shape) -> int:
    """Returns how many pairs of matrices two stacks have once they are broadcast."""
    count = max(len(first), len(second)) - 2
    stacks = [[1] * (count + 2 - len(shape)) + [*shape[:-2]] for shape in (first, second)]
    return prod(max(sizes) for sizes in zip(*stacks, strict=True))


def _sides(matrix: Shape) -> tuple[int, int, int]:
    """Returns the number of matrices in a stack, and the longer and the shorter side of each."""
    return prod(matrix[:-2]), max(matrix[-2:]), min(matrix[-2:])


def _cholesky(matrix: Shape, *_: Any) -> int:
    return prod(matrix[:-1]) * matrix[-1] ** 2 // 3


def _lu(matrix: Shape, *_: Any) -> int:
    """Counts m n^2 - n^3 / 3."""
    count, m, n = _sides(matrix)
    return count * (3 * m * n**2 - n**3) // 3


def _inverse(matrix: Shape, *_: Any) -> int:
    return 2 * prod(matrix) * matrix[-1]


def _inverse_of_factor(matrix: Shape, *_: Any) -> int:
    return 2 * prod(matrix) * matrix[-1] // 3


def _triangular(matrix: Shape, right: Shape, *_: Any) -> int:
    """Counts n^2 for each of the vectors in `right`, where it has matrices."""
    n = matrix[-1]
    return _stacks(matrix, right) * n * right[-2] * right[-1]


def _triangular_second(right: Shape, matrix: Shape, *_: Any) -> int:
    return _triangular(matrix, right)


def _both_factors_second(right: Shape, matrix: Shape, *_: Any) -> int:
    return 2 * _triangular(matrix, right)


def _both_factors_third(matrix: Shape, _: Shape, right: Shape, *__: Any) -> int:
    return 2 * _triangular(matrix, right)


def _solution(matrix: Shape, right: Shape, *_: Any) -> int:
    """Counts the LU factors and a solution for each vector of `right`, which may be one vector for each matrix."""
    is_vector = len(right) == 1 or list(right) == list(matrix[:-1])
    return _lu(matrix) + 2 * _triangular(matrix, [*right, 1] if is_vector else right)


def _reflectors(matrix: Shape, *_: Any) -> int:
    """Counts R and the reflectors that make up Q: 2 n^2 (m - n / 3)."""
    count, m, n = _sides(matrix)
    return 2 * count * (3 * m * n**2 - n**3) // 3


def _orthogonal(matrix: Shape, scales: Shape, *_: Any) -> int:
    """Counts Q (m, n) out of k reflectors: 4 m n k - 2 (m + n) k^2 + 4 k^3 / 3."""
    m, n, k = matrix[-2], matrix[-1], scales[-1]
    return prod(matrix[:-2]) * (12 * m * n * k - 6 * (m + n) * k**2 + 4 * k**3) // 3


def _qr(matrix: Shape, mode: str = "reduced", *_: Any) -> int:
    if mode == "r":
        return _reflectors(matrix)
    m, k = matrix[-2], min(matrix[-2:])
    return _reflectors(matrix) + _orthogonal([*matrix[:-1], m if mode == "complete" else k], [k])


def _by_reflectors(_: Shape, scales: Shape, matrix: Shape, left: bool = True, *__: Any) -> int:
    """Counts a matrix by Q, or Q by it, out of k reflectors of length q: 4 q k - 2 k^2 for each of its vectors."""
    q, vectors = (matrix[-2], matrix[-1]) if left else (matrix[-1], matrix[-2])
    k = scales[-1]
    return prod(matrix[:-2]) * vectors * (4 * q * k - 2 * k**2)


def _least_squares(matrix: Shape, right: Shape, *_: Any) -> int:
    """Counts R, Q by the right side, and a triangular solution, for each vector of it."""
    count, m, n = _sides(matrix)
    vectors = right[-1] if len(right) == len(matrix) else 1
    return _reflectors(matrix) + count * vectors * (4 * m * n - 2 * n**2 + n**2)


def _singular_values(matrix: Shape, full: bool = False, with_vectors: bool = True, *_: Any) -> int:
    """Counts Golub and Reinsch's algorithm: the values, with the first n vectors of each side, or with all."""
    count, m, n = _sides(matrix)
    if not with_vectors:
        return count * (12 * m * n**2 - 4 * n**3) // 3
    return count * (4 * m**2 * n + 8 * m * n**2 + 9 * n**3 if full else 14 * m * n**2 + 8 * n**3)


def _pseudo_inverse(matrix: Shape, _: Any = None, __: Any = None, is_symmetric: bool = False) -> int:
    """Counts singular values or eigenvalues with their vectors, and the product of these."""
    factors = _symmetric_eigenvalues(matrix) if is_symmetric else _singular_values(matrix)
    return factors + 2 * prod(matrix) * min(matrix[-2:])


def _symmetric_eigenvalues(matrix: Shape, _: str = "L", with_vectors: bool = True, *__: Any) -> int:
    return prod(matrix) * matrix[-1] * 9 if with_vectors else 4 * prod(matrix) * matrix[-1] // 3


def _eigenvectors(matrix: Shape, *_: Any) -> int:
    return 25 * prod(matrix) * matrix[-1]


def _eigenvalues(matrix: Shape, *_: Any) -> int:
    return 10 * prod(matrix) * matrix[-1]


def _complex_transform(x: Shape, dims: Sequence[int], *_: Any) -> int:
    return round(5 * prod(x) * log2(prod(x[dim] for dim in dims)))


def _real_transform(x: Shape, dims: Sequence[int], *_: Any) -> int:
    return round(2.5 * prod(x) * log2(prod(x[dim] for dim in dims)))


def _real_inverse(x: Shape, dims: Sequence[int], _: int, last: int) -> int:
    sizes = list(x)
    sizes[dims[-1]] = last
    return _real_transform(sizes, dims)


LINEAR_ALGEBRA: dict[str, Formula] = {
    **under(_cholesky, "cholesky linalg_cholesky_ex linalg_ldl_factor_ex"),
    **under(_lu, "linalg_lu linalg_lu_factor_ex _linalg_det _linalg_slogdet"),
    **under(_inverse, "linalg_inv_ex"),
    **under(_inverse_of_factor, "cholesky_inverse"),
    **under(_triangular, "linalg_solve_triangular"),
    **under(_triangular_second, "triangular_solve"),
    **under(_both_factors_second, "cholesky_solve _cholesky_solve_helper"),
    **under(_both_factors_third, "linalg_lu_solve linalg_ldl_solve"),
    **under(_solution, "_linalg_solve_ex"),
    **under(_reflectors, "geqrf"),
    **under(_orthogonal, "linalg_householder_product"),
    **under(_qr, "linalg_qr"),
    **under(_by_reflectors, "ormqr"),
    **under(_least_squares, "linalg_lstsq"),
    **under(_singular_values, "_linalg_svd"),
    **under(_pseudo_inverse, "linalg_pinv"),
    **under(_symmetric_eigenvalues, "_linalg_eigh"),
    **under(_eigenvectors, "linalg_eig"),
    **under(_eigenvalues, "_linalg_eigvals"),
    **under(_complex_transform, "_fft_c2c"),
    **under(_real_transform, "_fft_r2c"),
    **under(_real_inverse, "_fft_c2r"),
}
