"""Tests the FLOPs of factorizations against algorithms that count their own operations, and against closed forms."""

import numpy as np
import pytest
import torch

import nbkit
from nbkit.ops.flops import FORMULAS


class Counted:
    """A number that counts its additions and multiplications."""

    operations = 0

    def __init__(self, value):
        self.value = value

    def _apply(self, function, other):
        Counted.operations += 1
        return Counted(function(self.value, other.value if isinstance(other, Counted) else other))

    def __add__(self, other):
        return self._apply(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self._apply(lambda a, b: a - b, other)

    def __mul__(self, other):
        return self._apply(lambda a, b: a * b, other)

    def __truediv__(self, other):
        return self._apply(lambda a, b: a / b, other)


def numbers(matrix):
    return [[Counted(value) for value in row] for row in matrix]


def values(matrix):
    return np.array([[number.value for number in row] for row in matrix])


def eliminate(a):
    """Gives the LU factors of `a` in its place."""
    for k in range(len(a[0])):
        for i in range(k + 1, len(a)):
            a[i][k] = a[i][k] / a[k][k]
            for j in range(k + 1, len(a[0])):
                a[i][j] = a[i][j] - a[i][k] * a[k][j]
    return np.tril(values(a), -1) + np.eye(len(a), len(a[0])), np.triu(values(a)[: len(a[0])])


def factor(a):
    """Gives the lower factor of the symmetric `a` in its place, but for the roots of its diagonal."""
    for k in range(len(a)):
        column = [a[i][k] for i in range(len(a))]
        for i in range(k + 1, len(a)):
            a[i][k] = a[i][k] / a[k][k]
        for j in range(k + 1, len(a)):
            for i in range(j, len(a)):
                a[i][j] = a[i][j] - a[i][k] * column[j]
    lower = np.tril(values(a), -1) + np.eye(len(a))
    return lower * np.diag(values(a)), lower.T


def substitute(a, b):
    """Gives the solution for the lower triangle of `a` in the place of `b`."""
    for i in range(len(a)):
        for j in range(len(b[0])):
            for k in range(i):
                b[i][j] = b[i][j] - a[i][k] * b[k][j]
            b[i][j] = b[i][j] / a[i][i]
    return np.tril(values(a)), values(b)


def reflect(a):
    """Gives R of `a` (m, n) in its place, a Householder reflector for each column; and no Q."""
    for k in range(len(a[0])):
        vector = [row[k] for row in a[k:]]
        length = np.linalg.norm([each.value for each in vector])
        vector[0] = vector[0] + np.copysign(length, vector[0].value)
        scale = 2 / sum(each.value**2 for each in vector)
        for j in range(k, len(a[0])):
            dot = vector[0] * a[k][j]
            for i in range(1, len(vector)):
                dot = dot + vector[i] * a[k + i][j]
            dot = dot * scale
            for i in range(len(vector)):
                a[k + i][j] = a[k + i][j] - vector[i] * dot
    upper = values(a)[: len(a[0])]
    return upper.T, upper


N, M, RIGHT = 40, 56, 24
LINALG, PIVOTS = torch.ones(N, N), torch.ones(N, dtype=torch.int32)
TALL = np.random.default_rng(0).normal(size=(M, N)) + 9 * np.eye(M, N)
SQUARE, SYMMETRIC = TALL[:N], TALL.T @ TALL


@pytest.mark.parametrize(
    ("op", "sizes", "run", "product"),
    [
        ("linalg_lu_factor_ex", [[N, N]], lambda: eliminate(numbers(SQUARE)), SQUARE),
        ("linalg_lu_factor_ex", [[M, N]], lambda: eliminate(numbers(TALL)), TALL),
        ("linalg_cholesky_ex", [[N, N]], lambda: factor(numbers(SYMMETRIC)), SYMMETRIC),
        ("linalg_solve_triangular", [[N, N], [N, M]], lambda: substitute(numbers(SQUARE), numbers(TALL.T)), TALL.T),
        ("geqrf", [[M, N]], lambda: reflect(numbers(TALL)), TALL.T @ TALL),
    ],
)
def test_factorizations_cost_what_algorithms_count_that_solve_them(op, sizes, run, product):
    Counted.operations = 0
    left, right = run()
    assert FORMULAS[f"aten.{op}"](*sizes) == pytest.approx(Counted.operations, rel=0.08)
    np.testing.assert_allclose(left @ right, product, atol=1e-9)


@pytest.mark.parametrize(
    ("step", "op", "flops"),
    [
        (
            lambda: torch.linalg.solve(LINALG, torch.ones(N, RIGHT)),
            "_linalg_solve_ex",
            2 * N**3 // 3 + 2 * N**2 * RIGHT,
        ),
        (lambda: torch.linalg.solve(LINALG, torch.ones(N)), "_linalg_solve_ex", 2 * N**3 // 3 + 2 * N**2),
        (lambda: torch.linalg.inv(torch.ones(5, N, N)), "linalg_inv_ex", 5 * 2 * N**3),
        (lambda: torch.linalg.det(LINALG), "_linalg_det", 2 * N**3 // 3),
        (lambda: torch.linalg.cholesky(LINALG), "linalg_cholesky_ex", N**3 // 3),
        (lambda: torch.linalg.eigh(LINALG), "_linalg_eigh", 9 * N**3),
        # The Schur form with its vectors, as Golub and Van Loan count it, and without.
        (lambda: torch.linalg.eig(LINALG), "linalg_eig", 25 * N**3),
        (lambda: torch.ops.aten._linalg_eigvals(LINALG), "_linalg_eigvals", 10 * N**3),
        (lambda: torch._linalg_eigh(LINALG, "L", False), "_linalg_eigh", 4 * N**3 // 3),
        (lambda: torch._linalg_svd(torch.ones(M, N), False, False), "_linalg_svd", (12 * M * N**2 - 4 * N**3) // 3),
        (lambda: torch.linalg.svd(torch.ones(N, M), full_matrices=False), "_linalg_svd", 14 * M * N**2 + 8 * N**3),
        (lambda: torch.linalg.pinv(torch.ones(M, N)), "linalg_pinv", 16 * M * N**2 + 8 * N**3),
        (lambda: torch.linalg.qr(torch.ones(M, N)), "linalg_qr", 2 * (6 * M * N**2 - 2 * N**3) // 3),
        (lambda: torch.linalg.qr(torch.ones(M, N), mode="r"), "linalg_qr", (6 * M * N**2 - 2 * N**3) // 3),
        (lambda: torch.cholesky_solve(torch.ones(N, RIGHT), LINALG), "cholesky_solve", 2 * N**2 * RIGHT),
        (lambda: torch.cholesky_inverse(LINALG), "cholesky_inverse", 2 * N**3 // 3),
        (lambda: torch.triangular_solve(torch.ones(N, RIGHT), LINALG), "triangular_solve", N**2 * RIGHT),
        (lambda: torch.linalg.lu_solve(LINALG, PIVOTS, torch.ones(N, RIGHT)), "linalg_lu_solve", 2 * N**2 * RIGHT),
        # Reflector j has N - j numbers, of which one is 1.
        (
            lambda: torch.ormqr(torch.ones(N, 9), torch.ones(9), torch.ones(N, RIGHT)),
            "ormqr",
            RIGHT * sum(4 * (N - j) - 2 for j in range(9)),
        ),
        (
            lambda: torch.ormqr(torch.ones(N, 9), torch.ones(9), torch.ones(RIGHT, N), left=False),
            "ormqr",
            RIGHT * sum(4 * (N - j) - 2 for j in range(9)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_linear_algebra_counts_in_the_step(step, op, flops):
    table = nbkit.opcost().run(step).costs
    counted = table[table["flops"] > 0]
    assert [(counted["op"].iloc[0].split(".")[1], counted["flops"].sum())] == [(op, flops)]
