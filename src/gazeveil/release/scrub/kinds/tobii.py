"""Tobii Pro Lab and Studio exports."""

from __future__ import annotations

from gazeveil.release.scrub.tables import TableRules

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
