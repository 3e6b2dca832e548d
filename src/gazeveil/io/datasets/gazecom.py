"""GazeCom: 54 people, 18 natural movies of 20 s, every sample labelled by hand; ARFF, 250 Hz.

`<clip>/<person>_<clip>.arff[.gz]`: the folder is the stimulus, what stands before it in the file
name the person; the task is `free-viewing`. Three label columns: `handlabeller1`, `handlabeller2`,
and `handlabeller_final` after the tie was broken.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from gazeveil.gaze.cohort import Handle
from gazeveil.io.datasets.layout import person_in_folder
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head
from gazeveil.io.vendors.arff import is_arff, load


def sniff(head: Head) -> bool:
    """ARFF with hand labels on a flat picture."""
    return (
        is_arff(head) and "handlabeller" in head.text.lower() and "x_head" not in head.text.lower()
    )


def scan(path: Path, root: Path) -> Iterable[Handle]:
    """Person and stimulus from `<person>_<clip>` inside folder `<clip>`."""
    person, clip = person_in_folder(path)
    return [
        Handle(
            person,
            clip,
            partial(load, path, person, clip, task="free-viewing"),
            task="free-viewing",
            source=str(path),
        )
    ]


FORMAT = Format(
    "gazecom",
    "GazeCom with hand labels (ARFF)",
    sniff,
    scan,
    dataset=Dataset(
        title="GazeCom",
        publisher=(
            "Dorr, Martinetz, Gegenfurtner, Barth (University of Luebeck); labels by Startsev and"
            " Agtzidis (TU Munich)"
        ),
        licence="free for research; the authors ask for citation",
        citation=(
            "Dorr et al. 2010, Variability of eye movements when viewing dynamic natural scenes,"
            " Journal of Vision 10(10):28"
        ),
        layout="<clip>/<person>_<clip>.arff[.gz]",
    ),
)
