from nbkit.readers.oneflow.text.operator_line import lists_in


def test_lists_are_the_first_and_last_position_of_their_tensors():
    one, two, three, four, five = (f"{name}:(sbp=(B), size=(8), dtype=(float))" for name in "abcde")
    assert lists_in(f"[{one}, {two}], {three}, [], [{four}, {five}]") == [[0, 1], [3, 4]]
    assert lists_in(f"{one}, [{two}") == []
