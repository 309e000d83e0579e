"""The garbage collector rests meanwhile, and is as before afterwards."""

import gc

import pytest

from nbkit.trace.gc_paused import gc_paused


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_as_before_also_after_an_error(is_on):
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with pytest.raises(ValueError), gc_paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is is_on
    finally:
        (gc.enable if was_on else gc.disable)()
