"""The dense network of Eye Know You Too: its input, its sizes, its loss against a plain one, and
training that goes on after a kill as if it had never stopped.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate import simulate
from gazeveil.models.ekyt.weights import (
    DILATIONS,
    BatchPlan,
    dense_network,
    load_ekyt,
    multi_similarity,
    train_ekyt,
)
from gazeveil.models.ekyt.windows import (
    VelocityInput,
    VelocityScale,
    WindowSet,
    common_rate_hz,
    velocities,
)
from gazeveil.models.training import StepPlan, best_device, one_cycle
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

SMALL = VelocityInput(60.0, 1.0)
BATCH = BatchPlan(4, 3)


@pytest.fixture(scope="module")
def windows() -> WindowSet:
    return WindowSet.of(simulate(4, 2, 5.0, 60.0, seed=3), SMALL)


def turning(x_deg_s: float, y_deg_s: float, rate_hz: float = 250.0, seconds: float = 4.0):
    """Gaze that moves at a constant velocity on a screen."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return Recording(
        "p", "s", np.round(1e9 * t).astype(np.int64), x_deg_s * t - 10, y_deg_s * t - 10,
        space=Screen(1280, 720, 400, 225, 450), rate_hz=rate_hz,
    )  # fmt: skip


@pytest.mark.parametrize("rate_hz", [30.0, 83.0, 125.0, 250.0])
def test_a_constant_velocity_is_found_at_any_rate(rate_hz: float) -> None:
    found = velocities(turning(3.0, -2.0), VelocityInput(rate_hz))
    assert np.isnan(found[:, [0, 1, 2, -1]]).all()
    inner = found[:, 5:-5]
    np.testing.assert_allclose(inner[0], 3.0, atol=1e-6)
    np.testing.assert_allclose(inner[1], -2.0, atol=1e-6)


def test_on_a_sphere_velocities_are_those_of_the_direction_also_across_the_seam() -> None:
    t = np.arange(400) / 100.0
    x, y = np.mod(350.0 + 10.0 * t, 360.0), np.full(400, 60.0)
    one = Recording("p", "s", np.round(1e9 * t).astype(np.int64), x, y, space=Sphere())
    found = velocities(one, VelocityInput(100.0))[:, 5:-5]
    # 10 deg/s of longitude at 30 deg above the horizon; the derivative of a bent path over 60 ms.
    np.testing.assert_allclose(found[0], 10.0 * np.cos(np.radians(30)), rtol=1e-4)
    np.testing.assert_allclose(found[1], 0.0, atol=1e-9)


def test_lost_samples_have_no_velocity_and_their_neighbours_neither() -> None:
    whole = turning(3.0, 0.0, 100.0)
    valid = np.ones(len(whole), dtype=bool)
    valid[200] = False
    found = velocities(whole.with_(valid=valid), VelocityInput(100.0))[0]
    assert np.flatnonzero(np.isnan(found[3:-3])).tolist() == list(range(194, 201))


def test_head_velocities_need_a_head() -> None:
    head = np.stack([np.linspace(100, 120, 1000), np.full(1000, 90.0), np.zeros(1000)], axis=1)
    one = turning(1.0, 0.0).with_(head_deg=head)
    found = velocities(one, VelocityInput(125.0, channels="gaze+head"))
    assert found.shape[0] == 4
    np.testing.assert_allclose(found[2, 5:-5], 20 / 999 * 250, rtol=1e-4)
    with pytest.raises(DataError, match="channels=head needs the direction of the head"):
        velocities(turning(1.0, 0.0), VelocityInput(125.0, channels="head"))


def test_the_common_rate_is_the_lowest_and_at_most_the_highest_asked_for() -> None:
    fast, slow = turning(1, 1, 250.0), turning(1, 1, 60.0)
    assert common_rate_hz([fast], 125.0) == 125.0
    assert common_rate_hz([fast, slow], 125.0) == 60.0
    with pytest.raises(DataError, match=r"rate of .* is not known"):
        common_rate_hz([turning(1, 1).slice(0, 1).with_(rate_hz=np.nan)], 125.0)


def test_windows_are_known_for_more_than_half_of_their_time() -> None:
    whole = turning(1.0, 0.0, 100.0, 3.0)
    valid = np.ones(300, dtype=bool)
    valid[100:200] = False
    made = WindowSet.of([whole.with_(valid=valid)], VelocityInput(100.0, 1.0))
    known = np.isfinite(made.values).all(axis=0)
    assert len(made.starts)
    assert all(known[s : s + 100].sum() > 50 for s in made.starts)
    assert 100 not in made.starts
    short = WindowSet.of([turning(1.0, 0.0, 100.0, 0.7)], VelocityInput(100.0, 1.0))
    assert short.starts.tolist() == [0]
    assert short.lengths.tolist() == [100]
    assert len(WindowSet.of([turning(1.0, 0.0, 100.0, 0.4)], VelocityInput(100.0, 1.0)).starts) == 0


def test_windows_apart_stay_apart_within_each_recording(windows: WindowSet) -> None:
    apart = windows.every(1.0)
    assert set(apart.owner) == set(windows.owner)
    for i in set(apart.owner):
        assert (np.diff(apart.starts[apart.owner == i]) >= 60).all()


def test_the_scale_is_of_the_training_recordings_alone(windows: WindowSet) -> None:
    part = windows.where(lambda key: key[0] == windows.keys[0][0])
    ends = np.cumsum(windows.lengths)
    mine = windows.values[:, : ends[sum(k[0] == windows.keys[0][0] for k in windows.keys) - 1]]
    np.testing.assert_array_equal(VelocityScale.fit(part.used()).mean, VelocityScale.fit(mine).mean)
    assert VelocityScale.fit(mine).mean[0] != VelocityScale.fit(windows.used()).mean[0]


@pytest.mark.parametrize(("inputs", "channels"), [(2, 258), (4, 260)])
def test_the_network_has_the_sizes_of_the_paper(inputs: int, channels: int) -> None:
    network = dense_network(inputs, 5, seed=0)
    assert network.channels == channels
    assert network.parts["embedding"].weight.shape == (128, channels)
    assert network.embed(torch.randn(inputs, 3, 100)).shape == (3, 128)
    assert network.names(torch.randn(3, 128)).shape == (3, 5)
    layers = [tuple(c.weight.shape) for c in network.parts["convolutions"]]
    assert layers == [(32, inputs + 32 * i, 3) for i in range(8)]
    weights = sum(c.weight.numel() for c in network.parts["convolutions"])
    assert weights == 96 * sum(inputs + 32 * i for i in range(8))


def test_the_network_is_that_of_torchs_own_convolutions() -> None:
    network = dense_network(2, 5, seed=1)
    network.parts.eval()
    batch = torch.randn(2, 3, 150)
    joined = batch.transpose(0, 1)
    norms = list(network.parts["norms"])
    for i, d in enumerate(DILATIONS):
        ready = joined if i == 0 else torch.relu(norms[i - 1](joined))
        weight = network.parts["convolutions"][i].weight
        made = torch.nn.functional.conv1d(ready, weight, padding=d, dilation=d)
        joined = torch.cat((joined, made), dim=1)
    expected = network.parts["embedding"](torch.relu(norms[-1](joined)).mean(dim=-1))
    torch.testing.assert_close(network.embed(batch), expected, rtol=1e-4, atol=1e-5)


def plain_loss(embeddings, people) -> float:
    """The multi-similarity loss anchor by anchor, in float64."""
    e = np.asarray(embeddings, dtype=np.float64)
    e = e / np.linalg.norm(e, axis=1, keepdims=True)
    total = 0.0
    for i in range(len(e)):
        s = e @ e[i]
        positive = [s[j] for j in range(len(e)) if people[j] == people[i] and j != i]
        negative = [s[j] for j in range(len(e)) if people[j] != people[i]]
        if not positive or not negative:
            continue
        hard_p = [p for p in positive if p - 0.1 < max(negative)]
        hard_n = [n for n in negative if n + 0.1 > min(positive)]
        total += np.log(1 + sum(np.exp(-2 * (p - 0.5)) for p in hard_p)) / 2
        total += np.log(1 + sum(np.exp(50 * (n - 0.5)) for n in hard_n)) / 50
    return total / len(e)


@pytest.mark.parametrize("people", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2], [0, 0, 0], [0, 1, 2]])
def test_the_loss_is_the_plain_one_anchor_by_anchor(people: list[int]) -> None:
    made = torch.as_tensor(np.random.default_rng(len(people)).normal(size=(len(people), 5)))
    made.requires_grad_()
    value = multi_similarity(made, torch.tensor(people))
    assert value.item() == pytest.approx(plain_loss(made.detach().numpy(), people), rel=1e-5)
    value.backward()
    assert torch.isfinite(made.grad).all()


def test_the_miner_leaves_easy_pairs_out() -> None:
    apart = torch.tensor([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [0.01, 1.0]])
    assert multi_similarity(apart, torch.tensor([0, 0, 1, 1])).item() == 0.0
    assert multi_similarity(apart, torch.tensor([0, 1, 0, 1])).item() > 0.5


def test_the_rate_rises_and_falls_as_torchs_one_cycle_does() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=0.1)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=0.01, total_steps=50, cycle_momentum=False
    )
    for step in range(50):
        assert one_cycle(step, 50, 0.01) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)
        optimiser.step()
        if step < 49:
            theirs.step()


class KilledError(Exception):
    pass


def test_training_that_was_killed_goes_on_as_if_it_had_not_been(
    windows: WindowSet, tmp_path: Path
) -> None:
    plan = StepPlan(6, seed=5, checkpoint=tmp_path / "state.pt", every=2, of="these")
    whole, losses = train_ekyt(windows, replace(plan, checkpoint=None), BATCH)

    def kill(done: int, _: int) -> None:
        if done == 5:
            raise KilledError

    with pytest.raises(KilledError):
        train_ekyt(windows, plan, BATCH, progress=kill)
    seen: list[int] = []
    again, resumed = train_ekyt(windows, plan, BATCH, progress=lambda done, _: seen.append(done))
    assert seen == [5, 6]
    assert resumed == losses
    ours = again.network.parts.state_dict()
    for name, value in whole.network.parts.state_dict().items():
        assert torch.equal(value, ours[name]), name


def test_a_checkpoint_of_something_else_is_refused(windows: WindowSet, tmp_path: Path) -> None:
    file = tmp_path / "state.pt"
    train_ekyt(windows, StepPlan(1, checkpoint=file, of="these"), BATCH)
    with pytest.raises(DataError, match="belongs to a training with other recordings or settings"):
        train_ekyt(windows, StepPlan(1, checkpoint=file, of="those"), BATCH)
    with pytest.raises(DataError, match="other recordings or settings"):
        train_ekyt(windows, StepPlan(2, checkpoint=file, of="these"), BATCH)
    file.write_bytes(b"no checkpoint")
    with pytest.raises(DataError, match="is no checkpoint of a training"):
        train_ekyt(windows, StepPlan(1, checkpoint=file, of="these"), BATCH)


def test_a_seed_repeats_training_and_another_does_not(windows: WindowSet) -> None:
    first, second, other = (train_ekyt(windows, StepPlan(2, seed=s), BATCH)[1] for s in (1, 1, 2))
    assert first == second
    assert first != other


def test_weights_come_back_from_their_file_without_the_classifier(
    windows: WindowSet, tmp_path: Path
) -> None:
    model, _ = train_ekyt(windows, StepPlan(2), BATCH)
    model.save(tmp_path / "weights.npz")
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as archive:
        assert not [n for n in archive.files if "classifier" in n]
    again = load_ekyt(tmp_path / "weights.npz")
    assert again.setting == model.setting
    some = windows.every(1.0)
    np.testing.assert_array_equal(again.embed(some), model.embed(some))
    np.testing.assert_allclose(np.linalg.norm(model.embed(some), axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("content", [b"", b"text", None])
def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "weights.npz"
    if content is None:
        np.savez(file, a=np.zeros(3))
    else:
        file.write_bytes(content)
    with pytest.raises(FormatError, match="this is no file of weights"):
        load_ekyt(file)
    with pytest.raises(FormatError, match="there is no such file"):
        load_ekyt(tmp_path / "none.npz")


def test_one_person_is_not_enough_to_train_on(windows: WindowSet) -> None:
    alone = windows.where(lambda key: key[0] == windows.keys[0][0])
    with pytest.raises(DataError, match=r"needs windows of at least two.*Got 1"):
        train_ekyt(alone, StepPlan(1), BATCH)


def test_a_device_that_is_not_there_is_refused() -> None:
    assert best_device("cpu") == "cpu"
    with pytest.raises(ParameterError, match="'device' parameter of training"):
        best_device("nothing")
