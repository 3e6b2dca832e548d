"""Pupil Labs Neon recordings as Pupil Cloud or Neon Player export them; the folder is described in
:mod:`gazeveil.io.vendors.pupil.cloud`.

Neon adds `3d_eye_states.csv` (pupil diameters in mm) and `saccades.csv`; its scene picture is 1600
x 1200.
"""

from __future__ import annotations

from pathlib import Path

from gazeveil.io.parsing.naming import OPTIONS
from gazeveil.io.registry import Format
from gazeveil.io.source import Head
from gazeveil.io.vendors.pupil import cloud as pupil_cloud


def sniff(head: Head) -> bool:
    """A gaze.csv of Neon."""
    return pupil_cloud.is_gaze_file(head) and pupil_cloud.is_neon(head.path.parent)


def sniff_folder(folder: Path) -> bool:
    """An export folder of Neon."""
    return pupil_cloud.is_folder(folder) and pupil_cloud.is_neon(folder)


FORMAT = Format(
    "pupil-neon",
    "Pupil Labs Neon export folder (Pupil Cloud, Neon Player)",
    sniff,
    pupil_cloud.scan,
    OPTIONS,
    sniff_folder,
)
