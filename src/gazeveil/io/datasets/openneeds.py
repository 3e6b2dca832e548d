"""OpenNEEDS: 44 people, 2 scenes, head and gaze in a headset. Its file layout is not public, so
there is nothing to read.

The dataset is listed, and the format is there by name to say why and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head

_LAYOUT = (
    "not public, so there is no reader: write the recordings as CSV and read them with format='csv'"
)


def sniff(head: Head) -> bool:
    """No file can be known as OpenNEEDS."""
    return False


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """Say that it cannot be read."""
    raise FormatError(
        path,
        "the file layout of OpenNEEDS is not public",
        "Write the recordings as CSV and read them as csv (format= in Python, --format on the"
        " command line).",
    )


FORMAT = Format(
    "openneeds",
    "OpenNEEDS (layout not public)",
    sniff,
    scan,
    dataset=Dataset(
        title="OpenNEEDS",
        publisher="Emery, Zannoli, Warren, Xiao, Talathi (Facebook Reality Labs)",
        licence="on request from the publisher",
        citation=(
            "Emery et al. 2021, OpenNEEDS: a dataset of gaze, head, hand, and scene signals during"
            " exploration in open-ended VR environments, ETRA"
        ),
        layout=_LAYOUT,
    ),
)
