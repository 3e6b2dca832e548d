"""Tables of trackers below a screen and in headsets.

A position of the head holds standing height, and the positions of both eyes hold the distance
between them: both name a person by themselves, and gaze needs neither.

Pupil Labs: exports of Pupil Cloud (Invisible, Neon), Neon Player and Pupil Player (Core).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import find_separator
from gazeveil.release.scrub.job import ScrubJob, decimal, dump_json, load_json, scrubbed_document
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


#: Tables of Pupil Cloud and Neon Player; all share one clock.
CLOUD_FILES = (
    "gaze.csv",
    "imu.csv",
    "blinks.csv",
    "fixations.csv",
    "saccades.csv",
    "3d_eye_states.csv",
    "events.csv",
    "world_timestamps.csv",
)
CLOUD = TableRules(
    keep=(
        r"gaze[xy]|worn|fixation|blinkid|saccadeid|azimuth|elevation|gyro|acceleration|roll|pitch"
        r"|yaw|quaternion|duration|amplitude|mean|peak|pupildiameter|opticalaxis|eyelid|type$"
    ),
    shift=r"(start|end)?timestamp",
    label=r"(section|recording)id",
    event=r"name$",
    midpoint=r"eyeballcenter(left|right)",
    group=r"recordingid",
    words=frozenset({"recording.begin", "recording.end", "recording", "user", "cloud"}),
)

#: Tables of Pupil Player; all share one clock. `base_data` names samples by their times.
CORE_FILES = (
    "gaze_positions.csv",
    "pupil_positions.csv",
    "blinks.csv",
    "fixations.csv",
    "annotations.csv",
    "world_timestamps.csv",
)
CORE = TableRules(
    keep=(
        r"confidence|normpos|worldindex|gazepoint3d|gazenormal|eyeid|ellipse|diameter|model|sphere"
        r"|circle|theta|phi|projected|method|id$|duration|start(frame)?index|end(frame)?index"
        r"|dispersion|filterresponse|index|[xy]norm|[xy]scaled|onsu?rf|pts|avgpupilsize"
    ),
    shift=r".*timestamps?",
    label=r"label$",
    midpoint=r"eyecenter[01]3d",
    words=frozenset(
        {"3d", "2d", "2d c++", "3d c++", "pye3d", "pye3d 0.3.0 real-time", "pye3d 0.3.0 post-hoc"}
    ),
)
SURFACE_FILE = re.compile(r"^((?:gaze_positions|fixations)_on_surface_)(.+)(\.csv(?:\.gz)?)$")

#: Keys of `info.json` and `info.player.json`.
INFO = {
    "wearer_name": "label",
    "wearer_id": "label",
    "recording_id": "label",
    "module_serial_number": "removed",
    "frame_name": "removed",
    "glasses_serial_number": "removed",
    "scene_camera_serial_number": "removed",
    "data_format_version": "keep",
    "duration": "keep",
    "gaze_frequency": "keep",
    "start_time": "zero",
    "recording_name": "label",
    "recording_uuid": "label",
    "recording_software_name": "keep",
    "recording_software_version": "keep",
    "meta_version": "keep",
    "min_player_version": "keep",
    "duration_s": "keep",
    "start_time_system_s": "zero",
    "start_time_synced_s": "zero",
}
_DURATION = re.compile(r"^[\d:.]+$")
_INFO_ROWS = {
    "Recording Name": "label",
    "Recording UUID": "label",
    "Capture Software Version": "keep",
    "Data Format Version": "keep",
    "Duration Time": "keep",
    "World Camera Frames": "keep",
    "World Camera Resolution": "keep",
}


def scrubbed_info(path: Path, job: ScrubJob) -> list[str]:
    """`info.json` and `info.player.json`: labels, versions and lengths."""
    return dump_json(scrubbed_document(load_json(path), INFO, job))


def scrubbed_info_table(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """`info.csv` and `export_info.csv`, which have one key and value a line."""
    yield "key,value"
    for cells in csv.reader(lines()):
        rule = _INFO_ROWS.get(cells[0].strip()) if len(cells) > 1 else None
        if rule == "label":
            yield f"{cells[0]},{job.label(cells[1])}"
        elif rule == "keep" and (_DURATION.match(cells[1]) or job.is_harmless(cells[1])):
            yield f"{cells[0]},{cells[1]}"
