"""Logs of headsets: rotations, directions and validity stay; positions go.

A position of the head holds standing height, and the positions of both eyes hold the distance
between them: both name a person by themselves, and gaze needs neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from gazeveil.io.parsing.table import find_separator
from gazeveil.io.vendors.unity_hmd import GLUED, is_glued
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

#: HTC Vive Pro Eye. A pose of zeros says that the head was lost, so of a position only whether it
#: is zero stays.
VIVE = TableRules(
    keep=(
        r"eyevalid[lr]$|gazedirect[lr][xyz]$|pupildiameter[lr](mm)?$|openness[lr]$|helmetrot[xyz]$"
        r"|(eye|gaze)?confidence[lr]?$"
    ),
    shift=r"time(stamp)?(100ns|ms|unityvideoplayer)?$|frame(sequence)?$",
    presence=r"helmetpos[xyz]$",
    quoted=True,
)

#: Pico Neo 3 Pro.
PICO = TableRules(
    keep=(
        r"headrotation[xyz]$|combineeyegazevector[xyz]$|eye(left|right)(blinking|openness)$"
        r"|(left|right|combined?)eyeposestatus$|(left|right)eyegazeopenness$"
        r"|foveatedgaze(direction[xyz]|trackingstate)$"
    ),
    shift=r"timeline$|frame$",
    label=r"username$|videoname$",
    group=r"username$|videoname$",
    quoted=True,
)

#: Varjo Base. Iris diameters are a measure of the body.
VARJO = TableRules(
    keep=(
        r"(left|right)?status$|(gaze|left|right)forward[xyz]$|(left|right)pupildiameterinmm$"
        r"|(left|right)(pupilirisdiameterratio|openness)$|stability$|focusdistance$"
    ),
    shift=(
        r"rawtimestamp$|relativeto(videofirstframe|unixepoch)timestamp$|(capture)?timestamp$"
        r"|framenumber$"
    ),
    words=frozenset({"-nan(ind)", "nan(ind)", "inf", "-inf"}),
    quoted=True,
)

#: Unity logs of the Salient360! recordings.
UNITY = TableRules(
    keep=(
        r"camerarotation[xyzw]$|cam(pitch|yaw|roll)$|sphere(pitch|yaw|roll)$"
        r"|(left|right|mean)(gazedir|eyedirection|gazedirection)[xyz]$|[lr]val$|val[lr]$"
        r"|(left|right|mean|bin)por[xy]$"
        r"|(left|right)?pupil(size|diameter|rad|radius)?(left|right|[lr])?$"
    ),
    shift=r"oculots$|ocutimestamp$|ettimestamp$|unityts$|unitytimestamp$",
    quoted=True,
)


def scrubbed_unity(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """A Unity log; two cells that its program wrote as one are taken apart first."""
    source = (line for line in lines() if line.strip())
    header, first = next(source, ""), next(source, "")
    separator = find_separator(header)
    if not is_glued(header, first, separator):
        return scrubbed_table(lines, UNITY, job)

    def apart() -> Iterator[str]:
        rows = (line for line in lines() if line.strip())
        yield next(rows, "")
        for line in rows:
            yield GLUED.sub(separator, line)

    return scrubbed_table(apart, UNITY, job)
