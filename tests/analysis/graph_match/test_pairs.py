from nbkit.analysis.graph_match.pairs import Pairs


def test_what_has_another_partner_becomes_no_pair():
    pairs = Pairs()
    assert pairs.add_all([(0, 5), (0, 6), (1, 5), (1, 6)], "name") == [(0, 5), (1, 6)]
    assert (pairs.right_of, pairs.left_of) == ({0: 5, 1: 6}, {5: 0, 6: 1})
    assert pairs.evidence == {0: "name", 1: "name"}
