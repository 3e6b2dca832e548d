"""Pupil Invisible recordings as Pupil Cloud exports them; the folder is described in
:mod:`gazeveil.io.vendors.pupil.cloud`.

Told from Neon by `info.json`, by the files only Neon has, or by the size of the scene picture (1088
x 1080).
"""

from __future__ import annotations

from pathlib import Path

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


FORMAT = Format(
    "pupil-invisible",
    "Pupil Invisible export folder (Pupil Cloud)",
    sniff,
    pupil_cloud.scan,
    OPTIONS,
    sniff_folder,
)
