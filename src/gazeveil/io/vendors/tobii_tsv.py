"""Tobii Pro Lab and Tobii Studio exports: one table with rows of all participants, recordings and
stimuli.

Column names go without their unit brackets and without blanks, so `Gaze point left X [DACS px]`
(Pro Lab) and `GazePointLeftX (ADCSpx)` (Studio) are one. Used: `Recording timestamp` (us or ms),
`Participant name`, `Recording name`, `Presented Stimulus name` or `MediaName`, `Recording
resolution width/height`, `Gaze point (left/right) X/Y`, `Validity left/right`, `Pupil diameter
left/right`, `Eye movement type` or `GazeEventType`, `Sensor`, `Event` or `StudioEvent`.

* One recording per participant, recording and stimulus; rows outside a stimulus are the stimulus
  :data:`NO_STIMULUS`. The session counts a participant's recordings of that stimulus in the order
  they appear; the recording name, which is often numbered over participants, is in the metadata.
* Rows of other sensors and event rows are not samples: they are counted, and events become
  messages.
* Validity is `Valid`/`Invalid`, or 0 (certain) to 4 (lost), of which 0 and 1 are used.
* A time column without unit is milliseconds or microseconds: a step that would mean a tracker
  slower than 5 Hz decides. Or say `time_unit=`.
* Display coordinates (`DACS`, `ADCS`) go before media coordinates (`MCS`), which become places on
  the display by `Presented Media position X/Y` and `width/height` (Studio: `MediaPosX/Y`,
  `MediaWidth/Height`) of their row; without these columns they are refused.
* Pixels are those of `Recording resolution`; a `screen=` of others is refused, unless gaze is a
  fraction of the display.
* Millimetres come from `screen=`, or from an assumed 24 inch screen at 650 mm
  (`metadata["assumed_geometry"]`).
* Exports of glasses have gaze directions in the head unit's frame (`HUCS`: x left, y up, z
  forward): these become directions in the head.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Ints, Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.events import WORD
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Message, Recording
from gazeveil.io.parsing import headset
from gazeveil.io.parsing.assemble import assemble, pupil_of, refuse_other_pixels
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import UNIT_NS, Table, stamp
from gazeveil.io.plain.text import FirstRows, sheets
from gazeveil.io.registry import Format, Scrub, TableRules, bare
from gazeveil.io.source import Head

#: Stimulus of rows that belong to none.
NO_STIMULUS = "no-stimulus"

_BRACKETS = re.compile(r"[\[(]([^\])]*)[\])]")
_SIZE = re.compile(r"0*([1-9]\d*)\s*x\s*0*([1-9]\d*)")
_TYPES = {"fixation": "fixation", "saccade": "saccade"}
_ASSUMED_WIDTH_MM = 531.0
_ASSUMED_DISTANCE_MM = 650.0


def sniff(head: Head) -> bool:
    """By a recording timestamp and a gaze point."""
    names = {bare(c) for c in head.cells}
    return "recordingtimestamp" in names and bool(
        names & {"gazepointx", "gazepointleftx", "gazedirectionleftx"}
    )


# Bare names of the columns that place a medium, and of its own size.
_MEDIA = (
    r"presented(media|stimulus)(width|height|position[xy])|media(width|height|pos[xy])|"
    r"original(media|stimulus)(width|height)"
)
# Columns that are used, by bare name: numbers, words, and cells that tell samples from events.
_NUMBERS = re.compile(
    r"gazepoint(left|right)?[xy]|gazedirection(left|right)[xyz]|pupil(diameter)?(left|right)|"
    r"recordingresolution(width|height)|eyepos(ition)?(left|right)z|distance(left|right)|" + _MEDIA
)
_WORDS = re.compile(
    r"participantname|recordingname|presented(stimulus|media)name|medianame|stimulusname|sensor|"
    r"(studio)?event|eventvalue|studioeventdata|eyemovementtype|gazeeventtype|"
    r"validity(left|right)|recordingresolution"
)
_WRITTEN = re.compile(r"gazepoint(left|right)?[xy]|validity(left|right)")


@dataclass(frozen=True)
class TobiiExport:
    """A parsed export with the columns that are used, numbers and stripped words; `header` names
    all columns. Of a large file the text is in memory block by block.
    """

    header: Table
    frame: pl.DataFrame
    t_ns: Ints
    parts: dict[tuple[str, ...], Ints]

    def column(self, *names: str, bracket: str = "") -> str | None:
        """The first of these columns that is there; `bracket` is a pattern
        its brackets must match.
        """
        fitting = (name for want in names for name in self.header.names if bare(name) == want)
        found = re.compile(bracket, re.IGNORECASE).search
        return next((n for n in fitting if found(" ".join(_BRACKETS.findall(n)))), None)

    def floats(self, name: str | None) -> Floats | None:
        """A column as numbers, None for no column."""
        return None if name is None else self.frame[name].to_numpy()

    def words(self, *names: str) -> pl.Series | None:
        """A column as stripped text, empty where nothing is written; None where it is not there."""
        name = self.column(*names)
        return None if name is None else self.frame[name].cast(pl.String)

    @cached_property
    def kind(self) -> Codes:
        """0 for a sample of the eye tracker, 1 for a row of another sensor, 2 for a row that only
        says an event.
        """
        sensor = self.words("sensor")
        if sensor is not None and sensor.ne("").any():
            mine = sensor.str.to_lowercase().is_in(["eye tracker", "eyetracker"]).to_numpy()
            return np.where(mine, 0, np.where(sensor.ne("").to_numpy(), 1, 2)).astype(np.int8)
        events = self.words("event", "studioevent")
        if events is None:
            return np.zeros(self.frame.height, dtype=np.int8)
        written = np.zeros(self.frame.height, dtype=np.bool_)
        for name in self.frame.columns:
            if _WRITTEN.fullmatch(bare(name)):
                cells = self.frame[name]
                is_number = cells.dtype == pl.Float64
                found = cells.is_not_nan() if is_number else cells.cast(pl.String).ne("")
                written |= found.to_numpy()
        return np.where(written | events.eq("").to_numpy(), 0, 2).astype(np.int8)

    @cached_property
    def types(self) -> Texts | None:
        """The tracker's word for each row, in ours."""
        cells = self.words("eyemovementtype", "gazeeventtype")
        return (
            None
            if cells is None
            else cells.str.to_lowercase()
            .replace_strict(_TYPES, default="undefined")
            .to_numpy()
            .astype(WORD)
        )

    @cached_property
    def messages(self) -> dict[tuple[str, ...], list[Message]]:
        """Events of each recording."""
        owner = np.zeros(self.frame.height, dtype=np.int64)
        for number, rows in enumerate(self.parts.values()):
            owner[rows] = number
        found: dict[tuple[str, ...], list[Message]] = {part: [] for part in self.parts}
        parts = list(self.parts)
        for row, text in self._events():
            found[parts[owner[row]]].append(Message(int(self.t_ns[row]), text))
        return found

    def _events(self) -> list[tuple[int, str]]:
        """Row and text of each event."""
        names, values = (
            self.words("event", "studioevent"),
            self.words("eventvalue", "studioeventdata"),
        )
        if names is None:
            return []
        return [
            (i, f"{names[i]} {values[i] if values is not None else ''}".strip())
            for i in names.ne("").arg_true().to_list()
        ]


@lru_cache(maxsize=1)
def _open(
    path: Path, _stamp: tuple[int, int], decimal: str | None, time_unit: str | None
) -> TobiiExport:
    """The export; kept until the next file, so that its recordings do not parse it again."""
    frames, times, header, unit = [], [], None, time_unit
    for sheet in sheets(path, decimal=decimal):
        names = [n for n in sheet.names if bare(n) == "recordingtimestamp"]
        clock = names[0] if names else sheet.need("Recording timestamp")
        header = header or replace(sheet, frame=sheet.frame.clear(), lines="")
        unit = unit or _said_unit(clock) or _stepped_unit(FirstRows.at(path, {}).numbers(clock))
        times.append(sheet.times_ns(clock, unit=unit))
        frames.append(pl.DataFrame(_used(sheet)))
    assert header is not None
    frame = pl.concat(frames)
    export = TobiiExport(header, frame, np.concatenate(times), {})
    keys = (
        ("participantname",),
        ("recordingname",),
        ("presentedstimulusname", "presentedmedianame", "medianame", "stimulusname"),
    )
    groups = replace(header, frame=frame).groups(*(export.column(*names) for names in keys))
    return replace(export, parts=dict(groups))


def _used(sheet: Table) -> dict[str, Floats | pl.Series]:
    """Columns of a block that are used; words repeat, so that each is held once."""
    found: dict[str, Floats | pl.Series] = {}
    for name in sheet.names:
        if _NUMBERS.fullmatch(bare(name)):
            found[name] = sheet.floats(name)
        elif _WORDS.fullmatch(bare(name)):
            cells = sheet.column(name).fill_null("").str.strip_chars()
            found[name] = cells.cast(pl.Categorical)
    return found


def _stepped_unit(ticks: Floats) -> str:
    """The unit of times that say none, by their steps."""
    steps = np.diff(np.unique(ticks[np.isfinite(ticks)]))
    return "us" if len(steps) and np.median(steps) > 200 else "ms"


def _said_unit(name: str) -> str | None:
    """The unit in the brackets of a column of times."""
    brackets = " ".join(_BRACKETS.findall(name)).lower().split()
    words = {"ms": "ms", "us": "us", "µs": "us", "μs": "us"}
    return next((unit for word, unit in words.items() if word in brackets), None)


def load(
    path: Path,
    names: Names,
    part: tuple[str, ...],
    options: tuple[Screen | None, str | None, str | None],
) -> Recording:
    """The rows of one participant, recording and stimulus."""
    screen, time_unit, decimal = options
    at = (path, stamp(path), decimal, time_unit)
    export = _open(*at)
    rows = export.parts[part]
    kind = export.kind[rows]
    kept = rows[kind == 0]
    space, left, right, combined, metadata = _gaze(at, screen)
    sizes = [
        export.floats(export.column(f"pupildiameter{s}", f"pupil{s}")) for s in ("left", "right")
    ]
    pupils = [np.where(p[kept] > 0, p[kept], np.nan) for p in sizes if p is not None]
    eyes = [None if eye is None else eye[kept] for eye in (left, right)]
    single = None if combined is None or any(e is not None for e in eyes) else combined[kept]
    return assemble(
        path,
        **vars(names),
        t_ns=export.t_ns[kept],
        space=space,
        x_deg=None if single is None else single[:, 0],
        y_deg=None if single is None else single[:, 1],
        left_deg=eyes[0],
        right_deg=eyes[1],
        pupil=pupil_of(pupils),
        labels={} if export.types is None else {"tobii": export.types[kept]},
        messages=tuple(export.messages[part]),
        not_samples={
            "other_sensors": int(np.count_nonzero(kind == 1)),
            "event_rows": int(np.count_nonzero(kind == 2)),
        },
        metadata={**metadata, "pupil_unit": "mm", **({"recording": part[1]} if part[1] else {})},
    )


def _valid(export: TobiiExport, side: str) -> Bools | None:
    cells = export.words(f"validity{side}")
    return (
        None
        if cells is None
        else cells.str.to_lowercase().is_in(["valid", "0", "1", "0.0", "1.0"]).to_numpy()
    )


@lru_cache(maxsize=1)
def _gaze(
    at: tuple[Path, tuple[int, int], str | None, str | None], screen: Screen | None
) -> tuple[Space, Floats | None, Floats | None, Floats | None, dict[str, object]]:
    """Space, left, right and combined gaze of all rows, and what to say about the geometry; kept as
    the export is.
    """
    path, export = at[0], _open(*at)
    if export.column("gazedirectionleftx", bracket="HUCS") is not None:
        eyes = []
        for side in ("left", "right"):
            columns = [
                export.column(f"gazedirection{side}{a}", bracket="HUCS")
                or export.header.need(f"Gaze direction {side} {a}")
                for a in "xyz"
            ]
            vectors = np.stack([export.frame[c].to_numpy() for c in columns], axis=1)
            eyes.append(headset.unit(vectors * [-1.0, 1.0, 1.0], _valid(export, side)))
        gaze = headset.gaze(eyes[0], eyes[1])
        return Sphere(), gaze.left_deg, gaze.right_deg, None, {"frame": "head"}
    by_side = {side: _points(export, side) for side in ("left", "right", "")}
    if all(points is None for points in by_side.values()):
        moved = {side: _points_on_display(path, export, side) for side in by_side}
        by_side = {side: None if px is None else (px, False) for side, px in moved.items()}
    if all(points is None for points in by_side.values()):
        raise FormatError(
            path,
            "there is no gaze point in pixels or as a fraction of the screen",
            "Export 'Gaze point X' and 'Gaze point Y', or left and right.",
        )
    metadata: dict[str, object] = {}
    if screen is None:
        screen, metadata["assumed_geometry"] = _screen(export), True
    elif any(points is not None and not points[1] for points in by_side.values()):
        refuse_other_pixels(path, screen, _stated_px(export), "Recording resolution")
    placed: dict[str, Floats | None] = {}
    for side, points in by_side.items():
        if points is None:
            placed[side] = None
            continue
        values, norm = points
        scale = np.array([screen.width_px, screen.height_px]) if norm else np.ones(2)
        degrees = np.stack(screen.from_px(*(values * scale).T), axis=1)
        valid = _valid(export, side) if side else None
        if valid is not None:
            degrees[~valid] = np.nan
        placed[side] = degrees
    return screen, placed["left"], placed["right"], placed[""], metadata


def _points(export: TobiiExport, side: str) -> tuple[Floats, bool] | None:
    """Gaze point of one side ("" for both eyes together) in display coordinates, and whether it is
    a fraction.
    """
    for bracket, norm in (
        (r"DACS\s*px|ADCS\s*px", False),
        (r"^$|^px$", False),
        (r"^(?!.*MCS).*norm", True),
    ):
        columns = [export.column(f"gazepoint{side}{axis}", bracket=bracket) for axis in "xy"]
        if None not in columns:
            return np.stack([export.frame[str(c)].to_numpy() for c in columns], axis=1), norm
    return None


def _stated_px(export: TobiiExport) -> list[tuple[float, float]]:
    """Width and height of the display in pixels where the export says it, one or none."""
    both = export.words("recordingresolution")
    written = None if both is None else both.filter(both.ne(""))
    size = None if written is None or not len(written) else _SIZE.match(str(written[0]))
    if size is not None:
        return [(float(size[1]), float(size[2]))]
    width, height = (
        _first(export.floats(export.column(f"recordingresolution{d}"))) for d in ("width", "height")
    )
    return [] if width is None or height is None else [(width, height)]


def _screen(export: TobiiExport) -> Screen:
    """Resolution from the export; millimetres are assumed."""
    width, height = next(iter(_stated_px(export)), (1920.0, 1080.0))
    pitch = _ASSUMED_WIDTH_MM / width
    return Screen(width, height, width * pitch, height * pitch, _ASSUMED_DISTANCE_MM)


def _first(values: Floats | None) -> float | None:
    positive = None if values is None else values[np.isfinite(values) & (values > 0)]
    return None if positive is None or not len(positive) else float(positive[0])


def scan(
    path: Path,
    root: Path,
    screen: Screen | None = None,
    time_unit: str | None = None,
    decimal: str | None = None,
    **options: object,
) -> Iterator[Handle]:
    """One recording per participant, recording and stimulus, in the order they appear."""
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format tobii-tsv", "screen", "a Screen", screen)
    if time_unit is not None:
        checks.one_of("Format tobii-tsv", "time_unit", time_unit, UNIT_NS)
    if decimal is not None:
        checks.one_of("Format tobii-tsv", "decimal", decimal, (".", ","))
    naming = naming_options(**options)
    export = _open(path, stamp(path), decimal, time_unit)
    has_stimuli = any(stimulus for _, _, stimulus in export.parts)
    viewed = Counter[tuple[str, ...]]()  # by participant and stimulus
    for part in export.parts:
        viewed[part[::2]] += 1
        names = naming.names(
            path,
            root,
            person=part[0],
            stimulus=part[2] or (NO_STIMULUS if has_stimuli else ""),
            session=f"{viewed[part[::2]]}" if viewed[part[::2]] > 1 else "",
        )
        yield names.handle(partial(load, path, names, part, (screen, time_unit, decimal)), path)


#: Words that Pro Lab and Studio write by themselves.
_EVENT_WORDS = frozenset(
    {
        *("eye tracker", "gyroscope", "magnetometer", "gsr", "whole", "eyeopen", "eyeclosed"),
        *("recordingstart", "recordingend", "recordingpause", "mouseevent", "keyboardevent"),
        *(f"{w}stimulus{e}" for w in ("image", "video", "web") for e in ("start", "end")),
        *(f"{w}{e}" for w in ("movie", "image", "screenrecording") for e in ("start", "end")),
        *("eye tracker calibration start", "eye tracker calibration end", "keypress"),
        *("leftmouseclick", "syncportouthigh", "syncportoutlow"),
    }
)
FORMAT = Format(
    "tobii-tsv",
    "Tobii Pro Lab or Studio export (TSV)",
    sniff,
    scan,
    frozenset({"screen", "time_unit", "decimal"}) | OPTIONS,
    # Dates, projects, operators, participants' variables and areas of interest (whose columns are
    # called after stimuli) are left out.
    scrub=Scrub(
        TableRules(
            keep=(
                r"gazepoint(?:left|right)?[xyz]|gazedirection(?:left|right)[xyz]|gaze[23]d[xyz]"
                r"|sensor|pupil(?:diameter|size|position)?(?:left|right)[xyz]?"
                r"|validity(?:left|right)"
                r"|eyemovement(?:type|event)(?:duration|index)?|gazeevent(?:type|duration)"
                r"|fixation(?:point[xy]|index)|saccade(?:index|amplitude|direction|\w+direction)"
                r"|mouseposition[xy]|(?:gyro|accelerometer|magnetometer)[xyz]|recordingduration"
                r"|recordingresolution(?:width|height)?|recordingmonitorlatency"
                r"|distance(?:left|right)|eyeopenness(?:left|right)?|mappedfixation[xy]"
                r"|strictaveragegazepoint[xy]|" + _MEDIA
            ),
            shift=r"(?:recording|computer|eyetracker|local|system|device)?timestamp",
            label=r"participantname|recordingname|(?:presented)?(?:media|stimulus)name",
            event=r"event|eventvalue|studioevent|studioeventdata",
            midpoint=r"(?:eyepos(?:ition)?|gazeorigin)(?:left|right)[xyz]",
            group="participantname|recordingname",
            words=_EVENT_WORDS,
        )
    ),
)


_SHOWN = ("presentedmedia", "presentedstimulus", "media")
_REMEDY = (
    "Export the gaze point in display coordinates ('Gaze point X [DACS px]'), or 'Presented Media"
    " position X', 'position Y', 'width' and 'height' beside it; for glasses export 'Gaze direction"
    " left X [HUCS norm]' and its kind."
)


def _points_on_display(path: Path, export: TobiiExport, side: str) -> Floats | None:
    """Pixels of the display, (n, 2), for the gaze point of one side ("" for both eyes together);
    None where there is none in media coordinates.

    Raises
    ------
    FormatError
        Where nothing says where the medium stood, or its pixels are not those of the display.
    """
    for bracket, is_share in ((r"MCS\s*px", False), (r"MCS\s*norm", True)):
        names = [export.column(f"gazepoint{side}{axis}", bracket=bracket) for axis in "xy"]
        if names[0] is None or names[1] is None:
            continue
        values = np.stack([export.frame[str(n)].to_numpy() for n in names], axis=1)
        corner = _pair(export, ("positionx", "posx"), ("positiony", "posy"))
        size = _pair(export, ("width",), ("height",))
        if corner is None or size is None:
            raise FormatError(
                path,
                f"'{names[0]}' counts from the corner of the picture, and nothing says where that"
                " stood on the display",
                _REMEDY,
            )
        if not is_share:
            _refuse_scaled(path, export, size)
        return corner + values * (size if is_share else 1.0)
    return None


def _pair(export: TobiiExport, *axes: tuple[str, ...]) -> Floats | None:
    """Two columns of the medium as it was shown, (n, 2)."""
    found = [
        export.floats(export.column(*(f"{who}{w}" for who in _SHOWN for w in words)))
        for words in axes
    ]
    return None if found[0] is None or found[1] is None else np.stack([found[0], found[1]], axis=1)


def _refuse_scaled(path: Path, export: TobiiExport, size: Floats) -> None:
    own = [
        export.floats(export.column(f"originalmedia{d}", f"originalstimulus{d}"))
        for d in ("width", "height")
    ]
    for axis, original in enumerate(own):
        if original is not None and (np.abs(original - size[:, axis]) > 1).any():
            raise FormatError(
                path,
                "gaze is in pixels of a picture that was shown larger or smaller than it is",
                "Export the gaze point in display coordinates ('Gaze point X [DACS px]').",
            )
