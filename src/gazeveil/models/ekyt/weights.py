"""A verification network: its layers, its loss, and the file of its weights.

The dense network of Lohr and Komogortsev 2022.

    8 layers, each: batch norm, ReLU (not in the first), convolution of width 3 with 32 outputs,
    dilated by 1, 2, 4, 8, 16, 32, 64, 1; the input of a layer is joined to its output, so channels
    grow from 2 to 258. Then batch norm, ReLU, mean over time, and 128 linear outputs: the
    embedding. In training a batch norm, ReLU and linear layer names the person.

Tensors have shape (channels, windows, samples): a convolution is then one matrix product of its
3 x 32 rows with all windows at once, and joining channels copies rows. On a CPU this takes 0.6 of
the time of torch's own dilated convolution, and a GPU gets one large product per layer.

The multi-similarity loss with its miner (Wang et al., CVPR 2019), for all anchors at once.

With S the cosines of embeddings, P_i the other windows of anchor i's person and N_i those of other
people, the miner keeps

    negatives with S_ij > min over P_i of S_ik - margin, positives with S_ik < max over N_i of S_ij
    + margin,

and the loss is the mean over anchors of

    log(1 + sum over kept positives of exp(-alpha (S - base))) / alpha
    + log(1 + sum over kept negatives of exp(beta (S - base))) / beta.

A trained network with what it must be given, its embeddings, and its file.

The file is a NumPy archive of plain arrays and one JSON text. Reading it runs no code (no pickle),
allocates no more than the file may hold, and needs no torch. It may come from a stranger, so
everything in it is looked at before it is used: its kind, the size and type of each array, and
that all numbers are finite. The classifier of the training people is not in it; what the other
layers remember of those people is.

A file has marks of the recordings that a network was trained on, so that a test on one of them is
noticed. A mark is a salted digest of the beginning of a recording: where its first valid samples
lay, in thousandths of a degree. There is one for the first 128 of them, one for the first 256, and
so on by doubling. Names and times are not in it, so a recording under another name, or one that
ends earlier, is known again. It is not known again once its beginning was cut off, or it was
resampled, protected, or read with options that move its samples; and another recording of the same
person has no mark at all. A mark does not reveal gaze, but the holder of a recording can test
whether it is marked.

Training the dense network: batches of several windows of several people, drawn on the device.

All velocities lie on the device once; a batch is a matter of indices there. On a GPU the network
runs in bfloat16 (the loss in float32) and compiled; on a CPU in float32.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Singles
from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.models import torch
from gazeveil.models.ekyt.windows import VelocityInput, VelocityScale, WindowSet
from gazeveil.models.training import StepPlan, torch_or_refuse, train_steps

#: Dilation of each layer.
DILATIONS = (1, 2, 4, 8, 16, 32, 64, 1)

#: Outputs of each layer, width of its convolution, and numbers of an embedding.
GROWTH, WIDTH, NUMBERS = 32, 3, 128

#: Sharpness for positives and negatives, the cosine between both, and the miner's margin.
ALPHA, BETA, BASE, MARGIN = 2.0, 50.0, 0.5, 0.1


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """A network, trained or with random weights. Its parts are `norms` (one per layer, the last
    after all of them), `convolutions`, `embedding` and `classifier`.
    """

    inputs: int
    parts: torch.nn.ModuleDict = field(repr=False)

    @property
    def channels(self) -> int:
        """Channels after the last layer."""
        return self.inputs + GROWTH * len(DILATIONS)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.parts.parameters()).device

    def _layers(self, name: str) -> list[torch.nn.Module]:
        return list(self.parts[name].children())

    def embed(self, windows: torch.Tensor) -> torch.Tensor:
        """Embeddings, shape (windows, 128), of standardised velocities of shape (channels, windows,
        samples).
        """
        norms, convolutions = self._layers("norms"), self._layers("convolutions")
        joined = windows
        for layer, (convolution, dilation) in enumerate(zip(convolutions, DILATIONS, strict=True)):
            ready = joined if layer == 0 else _normed(norms[layer - 1], joined)
            joined = torch.cat(
                (joined, _convolved(ready, cast("torch.Tensor", convolution.weight), dilation))
            )
        pooled = _normed(norms[-1], joined).mean(dim=-1)
        embedded: torch.Tensor = self.parts["embedding"](pooled.T)
        return embedded

    def names(self, embeddings: torch.Tensor) -> torch.Tensor:
        """The classifier's scores of the training people, before a softmax."""
        scores: torch.Tensor = self.parts["classifier"](embeddings)
        return scores


def _normed(norm: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    """Batch norm over windows and time, then ReLU."""
    flat = norm(values.reshape(1, len(values), -1))
    return torch.relu(flat).reshape(values.shape)


def _convolved(values: torch.Tensor, weight: torch.Tensor, dilation: int) -> torch.Tensor:
    """A dilated convolution of width 3 that keeps the length, zeros beyond the ends."""
    channels, windows, samples = values.shape
    # (outputs, inputs, 3) -> one product for the three taps.
    taps = weight.permute(2, 0, 1).reshape(-1, channels) @ values.reshape(channels, -1)
    before, here, after = taps.reshape(WIDTH, -1, windows, samples)
    if dilation >= samples:
        return here
    return (
        here
        + torch.nn.functional.pad(before[..., :-dilation], (dilation, 0))
        + torch.nn.functional.pad(after[..., dilation:], (0, dilation))
    )


def cut(values: torch.Tensor, starts: torch.Tensor, samples: int) -> torch.Tensor:
    """Windows of `samples` samples, shape (channels, windows, samples)."""
    return values[:, starts[:, None] + torch.arange(samples, device=values.device)]


def dense_network(inputs: int, people: int, seed: int, device: str = "cpu") -> DenseNetwork:
    """A network with random weights, whose classifier tells `people` apart in training; refused
    without torch. `device` is as torch names it.
    """
    checks.count("dense_network", "inputs", inputs)
    checks.count("dense_network", "people", people)
    torch_or_refuse()
    # Drawn on the CPU, so that every device begins with the same weights.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = [inputs + GROWTH * layer for layer in range(len(DILATIONS) + 1)]
        parts = torch.nn.ModuleDict(
            {
                "norms": torch.nn.ModuleList(torch.nn.BatchNorm1d(size) for size in sizes[1:]),
                "convolutions": torch.nn.ModuleList(
                    torch.nn.Conv1d(size, GROWTH, WIDTH, bias=False) for size in sizes[:-1]
                ),
                "embedding": torch.nn.Linear(sizes[-1], NUMBERS),
                "classifier": torch.nn.Sequential(
                    torch.nn.BatchNorm1d(NUMBERS), torch.nn.ReLU(), torch.nn.Linear(NUMBERS, people)
                ),
            }
        )
    return DenseNetwork(inputs, parts.to(device))


def multi_similarity(embeddings: torch.Tensor, people: torch.Tensor) -> torch.Tensor:
    """The mean loss of a batch.

    Parameters
    ----------
    embeddings : tensor, shape (windows, numbers)
        Any length; cosines are taken.
    people : tensor of int64, shape (windows,)
        Whose each window is.
    """
    unit = torch.nn.functional.normalize(embeddings.float(), dim=1)
    cosines = unit @ unit.T
    same = people[:, None] == people[None, :]
    itself = torch.eye(len(people), dtype=torch.bool, device=people.device)
    positive, negative = same & ~itself, ~same
    infinity = torch.tensor(torch.inf, device=people.device)
    with torch.no_grad():
        hardest_positive = torch.where(positive, cosines, infinity).amin(dim=1, keepdim=True)
        hardest_negative = torch.where(negative, cosines, -infinity).amax(dim=1, keepdim=True)
        # An anchor without a positive (or a negative) keeps no pair of the other kind either.
        kept_negative = negative & (cosines + MARGIN > hardest_positive) & positive.any(1, True)
        kept_positive = positive & (cosines - MARGIN < hardest_negative) & negative.any(1, True)
    pull = _soft_sum(-ALPHA * (cosines - BASE), kept_positive) / ALPHA
    push = _soft_sum(BETA * (cosines - BASE), kept_negative) / BETA
    return (pull + push).mean()


def _soft_sum(exponents: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """log(1 + sum of exp) over the kept entries of each row."""
    # A finite number far below all exponents, because gradients of -inf are NaN.
    masked = torch.where(kept, exponents, torch.full_like(exponents, -1e9))
    one = torch.zeros_like(masked[:, :1])
    return torch.logsumexp(torch.cat((one, masked), dim=1), dim=1)


#: The word in the header of a file.
FORMAT = "gazeveil-ekyt-1"

#: What every card says of its weights.
HANDLING = (
    "These weights were fitted to recordings of the people they were trained on and remember them:"
    " whoever holds the file can test whether somebody was among them (how well is measured in"
    " Gazeveil's docs/results/networks.md). Store, share and delete it as you would the raw"
    " recordings."
)

#: What every card says of the marks in its file.
MARKS = (
    "The file also holds salted marks of how its training recordings begin, so that a test on one"
    " of them is noticed; gaze cannot be worked out of a mark, but whoever holds a recording can"
    " tell whether it is among them. A test on other recordings of the same people, or on"
    " recordings that lost their beginning, were resampled or protected, is not noticed."
)

#: Most bytes of a file, and of what it unpacks to; the network has 0.5 million numbers.
MOST_BYTES = 1 << 28

#: Names of the network's own arrays in the archive, and the beginning of those that stay out.
_PREFIX, _CLASSIFIER = "network.", "classifier."

_REMEDY = "Give the file weights.npz of a folder that `gazeveil train` wrote."

#: Windows that go through the network at once.
_AT_ONCE = 64


#: Steps of a degree that a mark tells apart, so that rounding in a file changes nothing.
_STEPS = 1000.0

#: Valid samples of the shortest beginning that has a mark, and how many of them must differ: gaze
#: that stands still would be alike by chance.
SHORTEST, FEWEST_PLACES = 128, 64


@dataclass(frozen=True)
class RecordingMarks:
    """Marks of recordings.

    Parameters
    ----------
    salt : str
        Differs from training to training: marks of two files cannot be compared.
    marks : frozenset of str
        Several per recording; none of one with fewer than :data:`SHORTEST` valid samples.
    """

    salt: str
    marks: frozenset[str]

    @classmethod
    def of(cls, recordings: Iterable[Recording], salt: str) -> RecordingMarks:
        """The marks of some recordings."""
        return cls(salt, frozenset(m for r in recordings for m in marks_of(r, salt)))

    @classmethod
    def from_dict(cls, written: Mapping[str, object]) -> RecordingMarks:
        """The way back from :meth:`to_dict`; TypeError or KeyError for something else."""
        marks = written["marks"]
        if not isinstance(marks, list):
            raise TypeError(type(marks))
        return cls(str(written["salt"]), frozenset(map(str, marks)))

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"salt": self.salt, "marks": sorted(self.marks)}

    def knows(self, recording: Recording) -> bool:
        """Whether gaze that begins so was trained on.

        Examples
        --------
        >>> from gazeveil.gaze.simulate import simulate
        >>> one, other = simulate(2, 1, 5.0, 60.0, seed=1)
        >>> known = RecordingMarks.of([one], "salt")
        >>> known.knows(one.with_(person="other name")), known.knows(other)
        (True, False)
        """
        return any(mark in self.marks for mark in marks_of(recording, self.salt))

    def people(self, cohort: Cohort) -> frozenset[str]:
        """Who has a recording that was trained on: the people who were, as far as it is known.

        Examples
        --------
        >>> from gazeveil.gaze.simulate import simulate
        >>> three = simulate(3, 1, 5.0, 60.0, seed=1)
        >>> RecordingMarks.of([three[1]], "salt").people(three) == {three[1].person}
        True
        """
        known: set[str] = set()
        if self.marks:
            for i, key in enumerate(cohort.keys):
                if key[0] not in known and self.knows(cohort[i]):
                    known.add(key[0])
        return frozenset(known)


#: Of a file that was written before files had marks, and of a network that was not kept.
NO_MARKS = RecordingMarks("", frozenset())


def marks_of(recording: Recording, salt: str) -> Iterator[str]:
    """The marks of a recording, of its shortest beginning first."""
    valid = recording.valid
    degrees = np.stack((recording.x_deg[valid], recording.y_deg[valid]), axis=1)
    places = np.round(degrees * _STEPS).astype("<i8")
    digest = hashlib.blake2b(key=salt.encode()[:64], digest_size=16)
    done, count = 0, SHORTEST
    while count <= len(places):
        digest.update(np.ascontiguousarray(places[done:count]).data)
        if len(np.unique(places[:count], axis=0)) >= FEWEST_PLACES:
            yield digest.hexdigest()
        done, count = count, 2 * count


@dataclass(frozen=True, eq=False)
class EkytModel:
    """A trained network that turns recordings into embeddings: how they become its input
    (`setting`), the scale of its training side, what its card says of the training, and marks of
    its training recordings.
    """

    network: DenseNetwork
    setting: VelocityInput
    scale: VelocityScale
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)
    marks: RecordingMarks = field(default=NO_MARKS, repr=False)

    def embed(self, windows: WindowSet) -> Floats:
        """Embeddings of length one, shape (windows, 128)."""
        device = self.network.device
        values = torch.as_tensor(self.scale.apply(windows.values), device=device)
        starts = torch.as_tensor(windows.starts, device=device)
        self.network.parts.eval()
        made = [torch.empty((0, NUMBERS))]
        with torch.no_grad():
            for first in range(0, len(starts), _AT_ONCE):
                some = starts[first : first + _AT_ONCE]
                embedded = self.network.embed(cut(values, some, self.setting.samples))
                made.append(torch.nn.functional.normalize(embedded, dim=1).cpu())
        return torch.cat(made).double().numpy()

    def means(
        self, windows: WindowSet, owners: Sequence[str], names: Sequence[str]
    ) -> tuple[Floats, Bools]:
        """Mean embedding of the windows of each name, of length one, and whether there is any.
        `owners` has the name of each window: a person, or a piece of a recording.
        """
        embedded = self.embed(windows)
        total = np.zeros((len(names), embedded.shape[1]))
        at = {name: i for i, name in enumerate(names)}
        np.add.at(total, np.array([at[name] for name in owners], dtype=np.int64), embedded)
        length = np.linalg.norm(total, axis=1)
        there: Bools = length > 1e-9
        return total / np.where(there, length, 1.0)[:, None], there

    def windows(self, recordings: Iterable[Recording], step_s: float | None = None) -> WindowSet:
        """Windows of recordings as the network wants them, half a window apart by default."""
        apart = self.setting.window_s / 2 if step_s is None else step_s
        return WindowSet.of(recordings, self.setting).every(apart)

    def save(self, path: Path) -> None:
        """Write the file; what was there before stays until the new one is whole."""
        header = {
            "format": FORMAT,
            "rate_hz": self.setting.rate_hz,
            "window_s": self.setting.window_s,
            "channels": self.setting.channels,
            "marks": self.marks.to_dict(),
            "about": dict(self.about),
        }
        own = {f"{_PREFIX}{n}": v.cpu().numpy() for n, v in _own(self.network.parts).items()}
        arrays = {"mean": self.scale.mean, "deviation": self.scale.deviation, **own}
        new = path.with_name(path.name + ".new")
        with new.open("wb") as file:
            text = np.array(json.dumps(header))
            np.savez_compressed(file, header=text, **arrays)  # type: ignore[arg-type]
        os.replace(new, path)


def load_ekyt(path: Path | str, device: str = "cpu") -> EkytModel:
    """Read a network that `gazeveil train` wrote.

    Raises
    ------
    FormatError
        For a file that is none.
    MissingExtraError
        Without torch.
    """
    header, arrays = _read(Path(path))
    try:
        setting = VelocityInput(*(header[name] for name in ("rate_hz", "window_s", "channels")))
        about, marks = dict(header["about"]), RecordingMarks.from_dict(header["marks"])
        mean, deviation = (arrays[n].astype(np.float64) for n in ("mean", "deviation"))
        whole = mean.shape == deviation.shape == (setting.count,) and bool((deviation > 0).all())
    except Exception as error:
        raise FormatError(path, "these weights belong to another network", _REMEDY) from error
    network = dense_network(setting.count, 1, 0, device)
    given = {n.removeprefix(_PREFIX): a for n, a in arrays.items() if n.startswith(_PREFIX)}
    shapes = {n: tuple(v.shape) for n, v in _own(network.parts).items()}
    if not whole or shapes != {n: a.shape for n, a in given.items()}:
        raise FormatError(path, "these weights belong to another network", _REMEDY)
    state = {n: torch.as_tensor(np.ascontiguousarray(a)) for n, a in given.items()}
    network.parts.load_state_dict(state, strict=False)
    network.parts.eval()
    return EkytModel(network, setting, VelocityScale(mean, deviation), about, marks)


def _read(path: Path) -> tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]:
    """Header and arrays of a file, all of them finite numbers."""
    if not path.is_file():
        raise FormatError(path, "there is no such file", _REMEDY)
    if path.stat().st_size > MOST_BYTES:
        raise FormatError(path, "this is no file of weights: it is too large", _REMEDY)
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # What a small file unpacks to may fill the memory.
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise ValueError("it unpacks to too much")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT or any(a.dtype.kind not in "fiu" for a in arrays.values()):
            raise ValueError("other contents")
    except (Exception, MemoryError) as error:
        raise FormatError(path, "this is no file of weights", _REMEDY) from error
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise FormatError(path, "these weights hold numbers that are not finite", _REMEDY)
    return header, arrays


def _own(parts: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The arrays that go into a file."""
    return {n: v for n, v in parts.state_dict().items() if not n.startswith(_CLASSIFIER)}


#: Weight of cross-entropy beside the multi-similarity loss.
NAMING = 0.1


@dataclass(frozen=True)
class BatchPlan:
    """What a batch is made of: at most so many people, and windows of each. `compiled` compiles the
    network on a GPU: half a minute once, then faster steps.
    """

    people: int = 16
    windows: int = 16
    compiled: bool = False

    def __post_init__(self) -> None:
        checks.count("BatchPlan", "people", self.people, least=2)
        checks.count("BatchPlan", "windows", self.windows, least=2)


@dataclass(frozen=True, eq=False)
class DeviceWindows:
    """Training windows on a device, sorted by person.

    Parameters
    ----------
    values : tensor of float32, shape (channels, samples)
        Standardised velocities.
    starts : tensor of int64, shape (windows,)
        Where windows begin, person by person.
    first, count : tensors of int64, shape (people,)
        Where each person's windows begin in `starts`, and how many there are.
    samples : int
        Of a window.
    """

    values: torch.Tensor
    starts: torch.Tensor
    first: torch.Tensor
    count: torch.Tensor
    samples: int

    @classmethod
    def on(cls, device: str, values: Singles, windows: WindowSet, code: Ints) -> DeviceWindows:
        """Put windows on a device; `code` is the person of each, counted from 0."""
        order = np.argsort(code, kind="stable")
        count = np.bincount(code)
        first = np.concatenate(([0], np.cumsum(count)[:-1]))
        return cls(
            torch.as_tensor(values, device=device),
            torch.as_tensor(windows.starts[order], device=device),
            torch.as_tensor(first, device=device),
            torch.as_tensor(count, device=device),
            windows.setting.samples,
        )

    def batch(self, plan: BatchPlan, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Random windows of random people: (channels, windows, samples), and whose they are."""
        device = self.values.device
        people = torch.randperm(len(self.count), generator=draws, device=device)[: plan.people]
        people = people.repeat_interleave(plan.windows)
        share = torch.rand(len(people), generator=draws, device=device, dtype=torch.float64)
        place = self.first[people] + (share * self.count[people]).long()
        return cut(self.values, self.starts[place], self.samples), people


def batch_loss(
    network: DenseNetwork, windows: DeviceWindows, plan: BatchPlan
) -> Callable[[torch.Generator], torch.Tensor]:
    """The loss of a random batch: multi-similarity + 0.1 cross-entropy."""
    gpu = network.device.type == "cuda"
    embed = torch.compile(network.embed) if gpu and plan.compiled else network.embed

    def loss(draws: torch.Generator) -> torch.Tensor:
        batch, people = windows.batch(plan, draws)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=gpu):
            embeddings = embed(batch)
        embeddings = embeddings.float()
        return multi_similarity(embeddings, people) + NAMING * torch.nn.functional.cross_entropy(
            network.names(embeddings), people
        )

    return loss


def train_ekyt(
    windows: WindowSet,
    steps: StepPlan,
    batches: BatchPlan | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[EkytModel, tuple[float, ...]]:
    """Train the network on windows of people, of the training side alone; batches of 16 people x 16
    windows by default, as Lohr and Komogortsev have it. `progress` is told (done, total).

    Returns
    -------
    EkytModel, tuple of float
        The network and the loss of every step.

    Raises
    ------
    DataError
        For fewer than two people with windows.
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    people, code = windows.people()
    if len(people) < 2:
        raise DataError(
            "ekyt learns to tell people apart and needs windows of at least two, each with more"
            f" than half of its {windows.setting.window_s:g} s known. Got {len(people)}. Give"
            " longer recordings with fewer lost samples, or a smaller window_s."
        )
    scale = VelocityScale.fit(windows.used())
    network = dense_network(windows.setting.count, len(people), steps.seed, device)
    on_device = DeviceWindows.on(device, scale.apply(windows.values), windows, code)
    loss = batch_loss(network, on_device, batches if batches is not None else BatchPlan())
    losses = train_steps(network.parts, loss, steps, progress)
    return EkytModel(network, windows.setting, scale), losses
