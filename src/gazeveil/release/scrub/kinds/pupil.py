"""Pupil Labs: exports of Pupil Cloud (Invisible, Neon), Neon Player and Pupil Player (Core)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from gazeveil.release.scrub.cells import dump_json, load_json, scrubbed_document
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines, TableRules

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
