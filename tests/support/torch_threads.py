"""One thread of torch for the tests of a module: small networks are faster so, and sums repeat."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Import this into a module that needs torch."""
    torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
