"""Arrays that nobody changes: shared where nobody can write, copied otherwise."""

import numpy as np
import pytest

from gazeveil.arrays import frozen, own_floats


def test_a_frozen_array_is_shared_and_no_other():
    shared = frozen(np.arange(6.0).reshape(2, 3)[[0, 1]])
    assert own_floats(shared) is shared
    assert np.shares_memory(own_floats(shared[:1]), shared)
    with pytest.raises(ValueError, match="read-only"):
        shared[0, 0] = 1.0
    open_to_all = np.arange(3.0)
    for other in (
        open_to_all,
        frozen(open_to_all[:2]),
        frozen(np.frombuffer(bytearray(16))),
        np.arange(3),
        frozen(np.ones(2, np.float32)),
        [1, 2],
    ):
        taken = own_floats(other)
        assert taken.dtype == np.float64
        assert taken.tolist() == np.asarray(other).tolist()
        assert not np.shares_memory(taken, np.asarray(other))


def test_what_freezes_a_view_of_somebody_elses_array_is_a_copy():
    base = np.zeros(4)
    view = frozen(base[:2])
    taken = own_floats(view)
    base[0] = 7.0
    assert taken.tolist() == [0.0, 0.0]
