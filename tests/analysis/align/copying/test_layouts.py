"""What parameters may be as one of the other side: as they are, transposed, a part, joined, reordered."""

import numpy as np

from nbkit.analysis.align.copying.layouts import Option, Source, Target, options_of, reordered


def source(name: str, *shape: int, is_turned: bool | None = None) -> Source:
    return Source(0, "matrix", name, np.arange(np.prod(shape)).reshape(shape), is_turned)


def options(target: Target, *sources: Source, lengths: tuple[int, ...] = (), divisors: tuple[int, ...] = ()):
    return {
        (option.how, *(one.name for one in option.sources)): option
        for option in given(target, sources, lengths, divisors)
    }


def given(target, sources, lengths, divisors) -> list[Option]:
    return list(options_of(target, sources, lengths, divisors))


def test_a_square_may_be_transposed():
    found = options(Target((3, 3)), source("a", 3, 3))
    assert [how for how, _ in found] == ["as it is", "transposed"]
    assert (found["transposed", "a"].value == source("a", 3, 3).value.T).all()


def test_products_that_read_it_turned_and_plain_leave_one_layout():
    turned = options(Target((3, 3), is_turned=True), source("a", 3, 3, is_turned=False))
    plain = options(Target((3, 3), is_turned=True), source("a", 3, 3, is_turned=True))
    assert ([*turned], [*plain]) == ([("transposed", "a")], [("as it is", "a")])


def test_a_kernel_may_be_the_matrix_of_its_patches():
    kernel, matrix = source("conv", 4, 3, 2, 2), source("linear", 4, 12)
    (there,) = options(Target((4, 12)), kernel).items()
    assert there[0] == ("reshaped", "conv") and (there[1].value == kernel.value.reshape(4, 12)).all()
    (back,) = options(Target((4, 3, 2, 2)), matrix).items()
    assert back[0] == ("reshaped", "linear") and (back[1].value == matrix.value.reshape(4, 3, 2, 2)).all()
    assert options(Target((12, 4)), kernel) == {}


def test_another_shape_is_no_option():
    assert options(Target((3, 5)), source("a", 3, 4)) == {}


def test_a_part_is_taken_as_a_whole_or_of_each_head():
    fused = source("qkv", 12, 2)
    found = options(Target((4, 2)), fused, lengths=(4,), divisors=(2,))
    assert (found["part [4:8] of 12", "qkv"].value == fused.value[4:8]).all()
    by_head = fused.value.reshape(2, 3, 2, 2)[:, 1].reshape(4, 2)
    assert (found["part [2:4] of 6 in each of 2", "qkv"].value == by_head).all()
    turned = options(Target((2, 4)), fused, lengths=(4,))
    assert (turned["part [4:8] of 12, transposed", "qkv"].value == fused.value[4:8].T).all()


def test_parts_of_other_lengths_are_taken():
    fused = source("qkv", 8, 2)
    found = options(Target((2, 2)), fused, lengths=(4, 2))
    assert {how for how, _ in found} >= {"part [4:6] of 8", "part [6:8] of 8"}


def test_parameters_are_joined_in_each_order_and_by_heads():
    q, k = source("q", 4, 2), source("k", 4, 2)
    found = options(Target((8, 2)), q, k, divisors=(2,))
    assert (found["joined", "k", "q"].value == np.concatenate([k.value, q.value])).all()
    by_head = np.stack([q.value.reshape(2, 2, 2), k.value.reshape(2, 2, 2)], 1).reshape(8, 2)
    assert (found["interleaved by 2", "q", "k"].value == by_head).all()


def test_a_transposed_join_is_one_in_the_other_axis():
    found = options(Target((2, 8)), source("q", 4, 2), source("k", 4, 2))
    assert found["joined, transposed", "q", "k"].value.shape == (2, 8)


def test_rotary_layouts_are_each_others_inverse():
    (option,) = given(Target((8,)), [source("b", 8)], (), ())
    there = reordered(option, 2, 0, to_neighbors=True)
    assert there.value.tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert reordered(there, 2, 0, to_neighbors=False).value.tolist() == option.value.tolist()


def test_a_layout_says_how_and_not_of_which_parameter():
    layouts = [
        {how: one.layout for (how, _), one in options(Target((4, 4)), source(name, 4, 4)).items()} for name in "ab"
    ]
    assert layouts[0] == layouts[1] and layouts[0]["as it is"] != layouts[0]["transposed"]
    (whole,) = given(Target((8,)), [source("b", 8)], (), ())
    turned = [reordered(whole, 2, 0, to_neighbors=to_neighbors).layout for to_neighbors in (True, False)]
    assert len({whole.layout, *turned}) == 3
    by_heads = options(Target((8, 2)), source("q", 4, 2), source("k", 4, 2), divisors=(2,))
    assert by_heads["joined", "q", "k"].layout != by_heads["interleaved by 2", "q", "k"].layout


def test_equal_values_have_equal_digests():
    (first,) = given(Target((8,)), [source("a", 8)], (), ())
    (second,) = given(Target((8,)), [source("b", 8)], (), ())
    assert first.digest == second.digest
    assert first.digest != reordered(first, 2, 0, to_neighbors=True).digest
