"""Blocks: the elements of arrays and views in order, and equality of bits."""

import numpy as np
import pytest

from nbkit.numerics.blocks import BLOCK, blocks, inner_product, same_bits

VALUE = np.random.default_rng(0).standard_normal((30, 20, 50)).astype(np.float32)


@pytest.mark.parametrize("value", [VALUE, VALUE.transpose(2, 0, 1), VALUE[:, :3], VALUE[0, 0, 0]])
def test_views_are_read_in_their_order(value):
    found = [tuple(block.copy() for block in pair) for pair in blocks((value, value), np.float64)]
    assert all(len(block) <= BLOCK for pair in found for block in pair)
    for side in (0, 1):
        assert np.array_equal(np.concatenate([pair[side] for pair in found]), value.astype(np.float64).reshape(-1))


@pytest.mark.parametrize("value", [VALUE, VALUE[0]])
def test_one_array_has_blocks_of_its_own(value):
    found = [block.copy() for (block,) in blocks((value,), np.float64)]
    assert np.array_equal(np.concatenate(found), value.astype(np.float64).reshape(-1))


def test_the_bits_of_the_two_zeros_differ():
    assert same_bits(VALUE, VALUE.copy()) and same_bits(np.full(3, np.nan), np.full(3, np.nan))
    assert not same_bits(np.zeros(3), -np.zeros(3))
    assert not same_bits(VALUE, VALUE.astype(np.float64))


def test_the_last_of_many_bytes_counts():
    value = np.zeros(3 * BLOCK + 1, dtype=np.uint8)
    assert not same_bits(value, np.append(value[:-1], np.uint8(1)))


@pytest.mark.parametrize("length", [0, 5, BLOCK, 3 * BLOCK + 5])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_an_inner_product_is_the_sum_of_all_products(length, dtype):
    left, right = (np.random.default_rng(one).standard_normal(2 * length).view(dtype)[:length] for one in (0, 1))
    assert inner_product(left, right) == pytest.approx((left.conj() * right).real.sum(), rel=1e-12, abs=1e-12)
