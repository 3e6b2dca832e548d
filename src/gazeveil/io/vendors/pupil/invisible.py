"""Pupil Invisible recordings as Pupil Cloud exports them; the folder is described in
:mod:`gazeveil.io.vendors.pupil.cloud`.

Told from Neon by `info.json`, by the files only Neon has, or by the size of the scene picture (1088
x 1080).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gazeveil.gaze.cohort import Handle
from gazeveil.io.parsing.naming import OPTIONS
from gazeveil.io.registry import Format
from gazeveil.io.source import Head
from gazeveil.io.vendors.pupil import cloud as pupil_cloud


def sniff(head: Head) -> bool:
    """A gaze.csv that is not Neon's."""
    return pupil_cloud.is_gaze_file(head) and not pupil_cloud.is_neon(head.path.parent)


def sniff_folder(folder: Path) -> bool:
    """An export folder that is not Neon's."""
    return pupil_cloud.is_folder(folder) and not pupil_cloud.is_neon(folder)


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per folder; a Neon folder is read as what it is."""
    folder = path if path.is_dir() else path.parent
    return pupil_cloud.scan(
        path,
        root,
        pupil_cloud.NEON if pupil_cloud.is_neon(folder) else pupil_cloud.INVISIBLE,
        **options,
    )


FORMAT = Format(
    "pupil-invisible",
    "Pupil Invisible export folder (Pupil Cloud)",
    sniff,
    scan,
    OPTIONS,
    sniff_folder,
)
