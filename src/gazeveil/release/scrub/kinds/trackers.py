"""Tables of trackers below a screen and in headsets.

A position of the head holds standing height, and the positions of both eyes hold the distance
between them: both name a person by themselves, and gaze needs neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from gazeveil.errors import FormatError
from gazeveil.io.parsing.table import find_separator
from gazeveil.release.scrub.cells import decimal
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

#: Gazepoint Analysis. Places of pupils in the camera's picture and in space are left out.
GAZEPOINT = TableRules(
    keep=(
        r"[fblr]pog[xyv]$|fpog(d|id)$|[lr]pmmv?$|bkid$|bkdur$|bkpmin$|saccade(mag|dir)$|mediaid$"
        r"|cnt$"
    ),
    shift=r"time$|timetickf10000000$",
    label=r"medianame$",
    quoted=True,
)
#: Ticks per second in the copy: how fast a computer's own clock ticks tells computers apart.
_TICKS_HZ = 10_000_000
_TICKS = re.compile(r'^\s*"?TIMETICK\s*\(\s*f\s*=\s*(\d+)\s*\)"?\s*$', re.IGNORECASE)
_SECONDS = re.compile(r'^\s*"?TIME\s*(?:\(.*\))?"?\s*$', re.IGNORECASE)

#: Tobii Pro SDK. Both eyes get the place between them.
TOBII_SDK = TableRules(
    keep=(
        r"(left|right)gazepoint(ondisplayarea[xy]?|inusercoordinatesystem[xyz]?|valid(ity)?)$"
        r"|(left|right)pupil(diameter|valid(ity)?)$|(left|right)gazeoriginvalid(ity)?$"
        r"|[lr](gazepos[23]d|pupildm|validity)|reltimestamp$"
    ),
    shift=r"(device|system)timestamp$|time$",
    midpoint=r"(left|right)gazeorigininusercoordinatesystem[xyz]?$|[lr]eyepos3d",
    quoted=True,
)


def scrubbed_gazepoint(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """An export; the date in the name of its time column goes."""
    first = next((line for line in lines() if line.strip()), "")
    separator = find_separator(first) or ","
    names = first.split(separator)
    seconds = next((i for i, n in enumerate(names) if _SECONDS.match(n)), None)
    # Dates in quotes may hold the separator, which would move every column after them.
    if seconds is None and re.search(r'"TIME\s*\([^"]*' + re.escape(separator), first):
        raise FormatError("export", "the name of its time column is in two cells", "Mend it.")
    ticks = next(((i, int(m[1])) for i, n in enumerate(names) if (m := _TICKS.match(n))), None)
    for i, name in enumerate(names):
        if i == seconds:
            names[i] = "TIME"
        elif _TICKS.match(name):
            # One clock is enough.
            names[i] = f"TIMETICK(f={_TICKS_HZ})" if seconds is None else "left_out"

    def rows() -> Iterator[str]:
        source = (line for line in lines() if line.strip())
        next(source, None)
        yield separator.join(names)
        for line in source:
            yield line if ticks is None else _in_ticks(line, separator, *ticks)

    return scrubbed_table(rows, GAZEPOINT, job)


def _in_ticks(line: str, separator: str, at: int, per_second: int) -> str:
    """A row with its ticks counted at the speed that every copy has."""
    cells = line.split(separator)
    time = decimal(cells[at]) if at < len(cells) else None
    if time is not None and per_second > 0:
        cells[at] = str(int((time * _TICKS_HZ / Decimal(per_second)).to_integral_value()))
    return separator.join(cells)


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

#: Columns of Pro Lab and Studio. Dates, projects, operators, participants' variables and areas of
#: interest (whose columns are called after stimuli) are left out.
PRO_LAB = TableRules(
    keep=(
        r"gazepoint|gazedirection|gaze3d|gaze2d|pupil(diameter|size|left|right|position)|validity"
        r"|eyemovement(type|event)|gazeevent(type|duration)|fixation(point|index)|saccade|sensor"
        r"|mouseposition|gyro|accelerometer|magnetometer|recordingresolution"
        r"|recordingmonitorlatency|recordingduration"
        r"|(presented|original)(media|stimulus)(width|height|position)|media(width|height|pos[xy])"
        r"|distance(left|right)|eyeopenness|strictaverage|ungrouped|mappedfixation"
    ),
    shift=r"(recording|computer|eyetracker|local|system|device)?timestamp",
    label=r"participantname|recordingname|(presented)?(media|stimulus)name",
    event=r"event$|eventvalue|studioevent|studioeventdata",
    midpoint=r"eyepos(ition)?(left|right)|gazeorigin(left|right)",
    group=r"participantname|recordingname",
    words=frozenset(
        [
            "eye tracker",
            "gyroscope",
            "magnetometer",
            "gsr",
            "recordingstart",
            "recordingend",
            "recordingpause",
            "imagestimulusstart",
            "imagestimulusend",
            "videostimulusstart",
            "videostimulusend",
            "moviestart",
            "movieend",
            "imagestart",
            "imageend",
            "webstimulusstart",
            "webstimulusend",
            "screenrecordingstart",
            "screenrecordingend",
            "eye tracker calibration start",
            "eye tracker calibration end",
            "mouseevent",
            "keyboardevent",
            "keypress",
            "leftmouseclick",
            "syncportouthigh",
            "syncportoutlow",
            "whole",
            "eyeopen",
            "eyeclosed",
        ]
    ),
)
