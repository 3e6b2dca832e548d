"""GRUs side by side: torch's figures and derivatives."""

import pytest

from gazeveil.models.headset.recurrent import gru_courses
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


def test_outputs_and_derivatives_are_those_of_each_network_by_itself() -> None:
    torch.manual_seed(0)
    networks = [torch.nn.GRU(3, 5, batch_first=True, bidirectional=True).double() for _ in "ab"]
    inputs = torch.randn(2, 4, 7, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 4, 7, 10, dtype=torch.float64)
    learnt = [inputs, *(p for gru in networks for p in gru.parameters())]
    ours = gru_courses(networks, inputs)
    theirs = torch.stack([gru(x)[0] for gru, x in zip(networks, inputs, strict=True)])
    torch.testing.assert_close(ours, theirs)
    found, expected = (
        torch.autograd.grad((courses * weights).sum(), learnt) for courses in (ours, theirs)
    )
    assert all(bool(g.abs().max() > 1e-3) for g in expected)
    torch.testing.assert_close(found, expected)
