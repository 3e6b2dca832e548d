"""A trained network with what it must be given, its embeddings, and its file.

The file is that of :mod:`gazeveil.models.weights_file`. The classifier of the training people is
not in it; what the other layers remember of those people is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.network import NUMBERS, DenseNetwork, cut, dense_network
from gazeveil.models.ekyt.velocity import VelocityInput
from gazeveil.models.ekyt.windows import VelocityScale, WindowSet
from gazeveil.models.marks import NO_MARKS, RecordingMarks
from gazeveil.models.weights_file import WeightsFile, write_weights

#: Beginning of the names of what stays out of the file.
_CLASSIFIER = "classifier."

#: Windows that go through the network at once.
_AT_ONCE = 64


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
            "rate_hz": self.setting.rate_hz,
            "window_s": self.setting.window_s,
            "channels": self.setting.channels,
            "marks": self.marks.to_dict(),
            "about": dict(self.about),
        }
        scale = {"mean": self.scale.mean, "deviation": self.scale.deviation}
        write_weights(path, "ekyt", header, self.network.parts, scale, _CLASSIFIER)


def load_ekyt(path: Path | str, device: str = "cpu") -> EkytModel:
    """Read a network that `gazeveil train` wrote; one of before files had marks has none.

    Raises
    ------
    FormatError
        For a file that is none.
    MissingExtraError
        Without torch.
    """
    file = WeightsFile.read(path, "ekyt")
    try:
        given = (file.header[name] for name in ("rate_hz", "window_s", "channels"))
        setting = VelocityInput(*given)
        about = dict(file.header["about"])
        written = file.header.get("marks")
        marks = NO_MARKS if written is None else RecordingMarks.from_dict(written)
    except Exception as error:
        raise file.refuse(error) from error
    mean = file.numbers("mean", setting.count)
    scale = VelocityScale(mean, file.numbers("deviation", setting.count, positive=True))
    network = dense_network(setting.count, 1, 0, device)
    file.fill(network.parts, _CLASSIFIER)
    return EkytModel(network, setting, scale, about, marks)
