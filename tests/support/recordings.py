"""Where the real recordings are, known only through GAZEVEIL_DATA, and what is in them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from gazeveil import Cohort, Recording

ARRAYS = ("t_ns", "x_deg", "y_deg", "valid", "pupil", "confidence")
DIRECTIONS = ("left_deg", "right_deg", "head_deg", "eye_in_head_deg")


def assert_same(one: Recording, other: Recording) -> None:
    """Whether two recordings hold the same: samples, labels, events and messages."""
    assert (one.key, one.space, one.messages) == (other.key, other.space, other.messages)
    np.testing.assert_equal(one.rate_hz, other.rate_hz)
    for name in (*ARRAYS, *DIRECTIONS):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.labels.keys() == other.labels.keys()
    for name in one.labels:
        np.testing.assert_array_equal(one.labels[name], other.labels[name], err_msg=name)
    assert (one.events is None) == (other.events is None)
    if one.events is not None and other.events is not None:
        assert one.events.source == other.events.source
        np.testing.assert_equal(dict(one.events.columns()), dict(other.events.columns()))


def data_folder() -> Path:
    return Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data")).resolve()


def real(*parts: str) -> Path:
    """The path of real recordings, or a skip that says what is missing."""
    path = data_folder().joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"the recordings '{'/'.join(parts)}' are not under GAZEVEIL_DATA ({data_folder()})"
        )
    return path


@cache
def _loaded(path: Path) -> Cohort:
    import gazeveil

    return gazeveil.read(path).load()


def real_cohort(*parts: str) -> Cohort:
    """Real recordings in memory, read once for all tests of a process: nobody can change them."""
    return _loaded(real(*parts))
