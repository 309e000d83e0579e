"""What the parameters of one op may be, by what was learned of those of the same name in other layers."""

import numpy as np

from nbkit.analysis.align.copying.choices import Sides
from nbkit.analysis.align.copying.layouts import Source, Target, options_of
from nbkit.analysis.align.copying.trial import Placement
from nbkit.analysis.align.copying.uses import Uses
from tests.analysis.align.makers import execution, numbers

X, W = numbers(0, 2, 8), numbers(1, 8, 8)


def test_channels_are_in_the_order_of_another_rotary_layout_as_in_the_layer_before():
    heads = (X @ W).reshape(1, 2, 2, 4)
    run = execution(
        ("x", None, (), X),
        ("layers.1.q", None, (), W),
        ("y", "aten.mm.default", ("x", "layers.1.q"), X @ W),
        ("heads", "aten.view.default", ("y",), heads),
    )
    uses = Uses(run, ["layers.1.q"])
    sides = Sides(uses, uses, {"layers.1.q": W}, str)
    (option,) = options_of(Target((8, 8), is_turned=False), [Source(0, "matrix", "layers.1.q", W, False)], (), ())
    both = list(sides.reordered(Placement(), [{0: option}]))
    assert [np.argsort(unit[0].value[0]).tolist() != np.argsort(W[0]).tolist() for unit in both] == [True, True]
    for unit in both:
        known = Placement(layouts=frozenset({("layers.#.q", unit[0].layout)}))
        (same,) = sides.reordered(known, [{0: option}])
        assert np.array_equal(same[0].value, unit[0].value)
