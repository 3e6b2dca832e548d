"""Files of trained weights: a NumPy archive of plain arrays and one JSON text.

Reading one runs no code (no pickle), allocates no more than the file may hold, and needs no torch.
A file may come from a stranger, so everything in it is looked at before it is used: its kind, the
size and type of each array, and that all numbers are finite.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError

if TYPE_CHECKING:
    import torch

#: The networks that `gazeveil train` writes, with the word in the header of their files.
FORMATS = {name: f"gazeveil-{name}-1" for name in ("ekyt", "dgaze", "ehtask")}

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

#: Most bytes of a file, and of what it unpacks to; our largest network has 3 million.
MOST_BYTES = 1 << 28

#: Name of a network's own arrays in the archive.
_PREFIX = "network."

_REMEDY = "Give the file weights.npz of a folder that `gazeveil train` wrote."


@dataclass(frozen=True, eq=False)
class WeightsFile:
    """What a file of weights holds.

    Parameters
    ----------
    path : Path
        The file, for messages.
    header : mapping
        The JSON text: what the network must be given, and what its card says.
    arrays : mapping of str to array
        Arrays beside the network's own, such as means and scales.
    network : mapping of str to array
        The network's own, by the names that torch has for them.
    """

    path: Path
    header: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    network: Mapping[str, NDArray[Any]]

    @classmethod
    def read(cls, path: Path | str, kind: str) -> WeightsFile:
        """Read the weights of a network, `kind` of :data:`FORMATS`.

        Raises
        ------
        FormatError
            For a file that holds none, or those of another network.
        """
        file = Path(path)
        if not file.is_file():
            raise FormatError(file, "there is no such file", _REMEDY)
        if file.stat().st_size > MOST_BYTES:
            raise FormatError(file, "this is no file of weights: it is too large", _REMEDY)
        try:
            content = file.read_bytes()
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                # What a small file unpacks to may fill the memory.
                if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                    raise ValueError("it unpacks to too much")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays.pop("header")))
            found = str(header["format"])
            numeric = all(_numeric(array) for array in arrays.values())
        except (Exception, MemoryError) as error:
            raise FormatError(file, "this is no file of weights", _REMEDY) from error
        other = next((name for name, word in FORMATS.items() if word == found), None)
        if other is None:
            raise FormatError(file, "this is no file of weights", _REMEDY)
        if other != kind:
            problem = f"these are weights of the network {other}, and {kind} needs its own"
            raise FormatError(file, problem, f"Train them with `gazeveil train --network {kind}`.")
        if not numeric:
            raise FormatError(file, "these weights hold numbers that are not finite", _REMEDY)
        own = {n.removeprefix(_PREFIX): a for n, a in arrays.items() if n.startswith(_PREFIX)}
        rest = {n: a for n, a in arrays.items() if not n.startswith(_PREFIX)}
        return cls(file, header, rest, own)

    def refuse(self, error: Exception | None = None) -> FormatError:
        """The sentence for contents that do not fit together."""
        made = FormatError(self.path, "these weights belong to another network", _REMEDY)
        made.__cause__ = error
        return made

    def numbers(self, name: str, count: int | None = None, positive: bool = False) -> Floats:
        """An array of one axis, for instance a scale of each channel.

        Raises
        ------
        FormatError
            Where it is missing or has another shape.
        """
        array = self.arrays.get(name)
        if array is None or array.ndim != 1 or len(array) != (count or len(array)):
            raise self.refuse()
        if positive and not (array > 0).all():
            raise self.refuse()
        return array.astype(np.float64)

    def fill(self, parts: torch.nn.Module, without: str = "") -> None:
        """Put the network's arrays in their places; those whose names begin with `without` are not
        in the file; none by default.

        Raises
        ------
        FormatError
            Where names or shapes are another network's.
        """
        import torch

        own = _own(parts, without)
        if {n: tuple(v.shape) for n, v in own.items()} != {
            n: a.shape for n, a in self.network.items()
        }:
            raise self.refuse()
        state = {n: torch.as_tensor(np.ascontiguousarray(a)) for n, a in self.network.items()}
        parts.load_state_dict(state, strict=False)
        parts.eval()


def _own(parts: torch.nn.Module, without: str) -> dict[str, torch.Tensor]:
    state = parts.state_dict()
    return {n: v for n, v in state.items() if not (without and n.startswith(without))}


def _numeric(array: NDArray[Any]) -> bool:
    """Whether an array holds finite numbers; a text or an object is no number."""
    if array.dtype.kind not in "fiu":
        raise ValueError(array.dtype)
    return bool(np.isfinite(array).all())


def write_weights(
    path: Path,
    kind: str,
    header: Mapping[str, object],
    parts: torch.nn.Module,
    arrays: Mapping[str, NDArray[Any]],
    without: str = "",
) -> None:
    """Write a file; what was there before stays until the new one is whole.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        One of :data:`FORMATS`.
    header : mapping
        Plain values: what the network must be given, and what its card says.
    parts : torch.nn.Module
        The network.
    arrays : mapping of str to array
        What belongs to it beside.
    without : str
        Beginning of the names that stay out; none by default.
    """
    own = {f"{_PREFIX}{n}": value.cpu().numpy() for n, value in _own(parts, without).items()}
    text = json.dumps({"format": FORMATS[kind], **header})
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        np.savez_compressed(file, header=np.array(text), **arrays, **own)  # type: ignore[arg-type]
    os.replace(new, path)
