"""A trained network with what it must be given, its embeddings, and its file.

The file is a NumPy archive of plain arrays and one JSON text: reading it runs no code and needs no
torch. The classifier of the training people is not in it; what the other layers remember of those
people is.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import FormatError
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.network import NUMBERS, DenseNetwork, cut, dense_network
from gazeveil.models.ekyt.velocity import VelocityInput
from gazeveil.models.ekyt.windows import VelocityScale, WindowSet

_FORMAT = "gazeveil-ekyt-1"

#: Windows that go through the network at once.
_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class EkytModel:
    """A network that turns recordings into embeddings.

    Parameters
    ----------
    network : DenseNetwork
        Trained.
    setting : VelocityInput
        How recordings become its input.
    scale : VelocityScale
        Of its training side.
    about : mapping
        What its card says of the training.
    """

    network: DenseNetwork
    setting: VelocityInput
    scale: VelocityScale
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

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

        Parameters
        ----------
        windows : WindowSet
            Windows.
        owners : sequence of str
            Name of each window: a person, or a piece of a recording.
        names : sequence of str
            Names in the order wanted.
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
            "format": _FORMAT,
            "rate_hz": self.setting.rate_hz,
            "window_s": self.setting.window_s,
            "channels": self.setting.channels,
            "about": dict(self.about),
        }
        arrays = {
            f"network.{name}": value.cpu().numpy()
            for name, value in self.network.parts.state_dict().items()
            if not name.startswith("classifier.")
        }
        new = path.with_name(path.name + ".new")
        with new.open("wb") as file:
            np.savez_compressed(
                file,
                header=np.array(json.dumps(header)),
                mean=self.scale.mean,
                deviation=self.scale.deviation,
                **arrays,
            )
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
    remedy = "Give the file weights.npz of a folder that `gazeveil train` wrote."
    file = Path(path)
    if not file.is_file():
        raise FormatError(file, "there is no such file", remedy)
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != _FORMAT:
            raise ValueError(header["format"])
        setting = VelocityInput(header["rate_hz"], header["window_s"], header["channels"])
        scale = VelocityScale(arrays.pop("mean"), arrays.pop("deviation"))
        about = dict(header["about"])
    except Exception as error:
        raise FormatError(file, "this is no file of weights", remedy) from error
    network = dense_network(setting.count, 1, 0, device)
    _fill(network, arrays, file, remedy)
    return EkytModel(network, setting, scale, about)


def _fill(network: DenseNetwork, arrays: Mapping[str, Any], file: Path, remedy: str) -> None:
    import torch

    state = {n.removeprefix("network."): torch.as_tensor(a) for n, a in arrays.items()}
    own = {n for n in network.parts.state_dict() if not n.startswith("classifier.")}
    if set(state) != own:
        raise FormatError(file, "these weights belong to another network", remedy)
    try:
        network.parts.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise FormatError(file, "these weights belong to another network", remedy) from error
    network.parts.eval()
