from nbkit.analysis.graph_match.pairs import Pairs, groups, if_single


def test_what_has_another_partner_becomes_no_pair():
    pairs = Pairs()
    assert pairs.add_all([(0, 5), (0, 6), (1, 5), (1, 6)], "name") == [(0, 5), (1, 6)]
    assert (pairs.right_of, pairs.left_of) == ({0: 5, 1: 6}, {5: 0, 6: 1})
    assert pairs.evidence == {0: "name", 1: "name"}


def test_a_key_that_two_have_makes_no_pair():
    assert if_single(groups([1, 2, 3], [4, 5], lambda number: number == 3, lambda number: number == 5)) == [(3, 5)]
