"""Which thread runs: one that Python has not started is the same one each time that it comes back to Python."""

import ctypes
import sys

import pytest

from nbkit.capture.raw.recording import Recording


@pytest.mark.skipif(sys.platform != "linux", reason="it calls the thread functions of Linux")
def test_a_thread_of_c_that_enters_python_twice_is_one_thread():
    """Python forgets all that is local to it in between: at its end, which a key is told of, it enters once more."""
    libc, recording, seen = ctypes.CDLL(None), Recording(), []
    key, thread = ctypes.c_uint(), ctypes.c_ulong()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def at_the_end(value):
        seen.append(recording.thread())

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def at_the_start(value):
        seen.append(recording.thread())
        libc.pthread_setspecific(key, ctypes.c_void_p(1))

    assert libc.pthread_key_create(ctypes.byref(key), at_the_end) == 0
    assert libc.pthread_create(ctypes.byref(thread), None, at_the_start, None) == 0
    assert libc.pthread_join(thread, None) == libc.pthread_key_delete(key) == 0
    first, second = seen
    assert first is second and (first.number, first.is_of_user) == (1, False)
    assert recording.threads == [recording.main, first]
