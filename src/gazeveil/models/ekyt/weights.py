"""A trained network with what it must be given, its embeddings, and its file.

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
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.network import NUMBERS, DenseNetwork, cut, dense_network
from gazeveil.models.ekyt.windows import VelocityInput, VelocityScale, WindowSet

if TYPE_CHECKING:
    import torch

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
        import torch

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
    import torch

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
