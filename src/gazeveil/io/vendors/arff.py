"""ARFF as the eye-movement datasets of Munich write it: `%@METADATA` comments, `@ATTRIBUTE` lines,
then comma-separated rows.

Comment lines may stand anywhere, after `@DATA` too. Columns go by attribute name: `time`
(microseconds), `x`, `y` (pixels), `confidence`, optional `x_head`, `y_head`, `angle_deg_head`;
every further attribute that is nominal, or whose name begins with `handlabeller` or `labeller` or
ends in `label`, is a label column.

GazeCom: 54 people, 18 natural movies of 20 s, every sample labelled by hand; ARFF, 250 Hz.

`<clip>/<person>_<clip>.arff[.gz]`: the folder is the stimulus, what stands before it in the file
name the person; the task is `free-viewing`. Three label columns: `handlabeller1`, `handlabeller2`,
and `handlabeller_final` after the tie was broken.

360_em: 13 people, 15 equirectangular videos, head and gaze at 120 Hz, two tiers of labels; ARFF.

Folders `gaze`, `ground_truth` (two files per video, labelled by hand) and `output_I-S5T_*` (labels
of the published algorithm) hold the same recordings, so reading the top folder takes `gaze` alone;
`part="ground_truth"` takes another folder, `part="all"` takes all, with the folder as the session.
Files are `<video>/<person>_<video>.arff`: the folder is the stimulus, what stands before or after
it in the file name the person. A folder that is named like a person (`P01`, `subject_3`, `7`) is
the person instead, and the rest of the file name the stimulus. A file that lies in one of the
folders above directly, without a video folder, is split at the first underscore into person and
video. `participant_info.csv` gives the people's attributes: its first column is the person.

Fourteen videos are from YouTube and end in their identifier there; one was made by the authors to
elicit certain movements. `synthetic=False` leaves that one out, as the papers do: the clip with
`synth` in its name, or else the only one without an identifier.

Gaze (`x`, `y`) and head (`x_head`, `y_head`) are pixels of the equirectangular picture (1920 x
1080), `angle_deg_head` is the roll. Labels keep their columns: `labeller_1`, `primary_label`,
`secondary_label` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Texts
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.gaze.geometry import SCREEN_SIZES, Screen, Sphere, eye_in_head
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import WORDS, assemble, folder_name, person_in_folder
from gazeveil.io.parsing.naming import OPTIONS, Names, naming_options
from gazeveil.io.parsing.table import Table, parse_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format, LineRules, Scrub, TableRules
from gazeveil.io.source import Head, read_text, stem
from gazeveil.io.tables_file import read_people

#: Integer label codes of the GazeCom hand labels.
CODES = ("undefined", "fixation", "saccade", "pursuit", "noise")

_ATTRIBUTE = r"""(?m)^@ATTRIBUTE\s+(?:'([^']+)'|"([^"]+)"|(\S+))"""
_NUMBER = re.compile(
    r"^%@METADATA\s+(\S+)\s+([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*$", re.IGNORECASE | re.MULTILINE
)
_LABEL = re.compile(r"^(hand)?labeller|label$|^em_type$", re.IGNORECASE)


def load(path: Path, names: Names, screen: Screen | None = None) -> Recording:
    """One ARFF file as a recording; on a screen where the metadata has one, else on the sphere.

    Raises
    ------
    FormatError
        Without `@DATA`, without attributes, for a row that does not fit, or where nothing says the
        size of the picture.
    """
    header, table = _parsed(path)
    said = re.findall(
        r"^%@METADATA\s+(\S+)\s+([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*$", header, re.I | re.M
    )
    meta = {name: float(value) for name, value in said}
    sizes = [meta.get(name, 0.0) for name in SCREEN_SIZES]
    if screen is None and min(sizes[2:]) > 0:
        screen = Screen(*sizes)
    if screen is None and not min(sizes[:2]) > 0:
        raise FormatError(
            path,
            "the header does not say how wide and high the picture is",
            "Give screen=Screen(...), or add %@METADATA lines.",
        )
    x, y = table.floats("x"), table.floats("y")
    head = eye = None
    if screen is not None:
        x, y = screen.from_px(x, y)
    else:
        to_deg = np.array([360.0, 180.0]) / sizes[:2]
        x, y = x * to_deg[0], y * to_deg[1]
        if table.has("x_head", "y_head"):
            rolls = table.maybe_floats("angle_deg_head")
            across = np.mod(table.floats("x_head") * to_deg[0], 360.0)
            roll = np.zeros(len(table)) if rolls is None else rolls
            head = np.stack((across, table.floats("y_head") * to_deg[1], roll), axis=1)
            eye = np.stack(eye_in_head(Sphere().vectors(x, y), head), axis=1)
    confidence = table.maybe_floats("confidence")
    words = {"".join(n) for n in re.findall(rf"{_ATTRIBUTE}\s+\{{", header, re.I)}
    labels = {
        n: _texts(table, n, n in words) for n in table.names if n in words or _LABEL.search(n)
    }
    return assemble(
        path,
        **vars(names),
        t_ns=table.times_ns("time", unit="us"),
        space=screen or Sphere(),
        x_deg=x,
        y_deg=y,
        # Zero confidence is how these trackers say "no eye here".
        valid=None if confidence is None else confidence > 0,
        head_deg=head,
        eye_in_head_deg=eye,
        confidence=confidence,
        labels=labels,
    )


def _parsed(path: Path) -> tuple[str, Table]:
    """Header and rows."""
    text = read_text(path)
    data_line = re.search(r"^@DATA\s*$", text, re.I | re.M)
    if data_line is None:
        raise FormatError(path, "there is no @DATA line", "The file was cut, or it is not ARFF.")
    header, rows = text[: data_line.start()], text[data_line.end() + 1 :]
    names = ["".join(n) for n in re.findall(rf"{_ATTRIBUTE}\s+\S", header, re.I)]
    if len(names) < max(1, len(re.findall(r"^@ATTRIBUTE\b", header, re.I | re.M))):
        raise FormatError(
            path, "an @ATTRIBUTE line is missing or has no type", "The file was cut; mend it."
        )
    first_line = header.count("\n") + 2
    return header, parse_table(path, rows, ",", first_line, header=names, comment="%")


def _texts(table: Table, name: str, is_nominal: bool) -> Texts:
    """A label column in our words: nominal text, or integer codes."""
    if is_nominal:
        cells = table.column(name).str.strip_chars().str.strip_chars("'\"").str.to_lowercase()
        return cells.fill_null("undefined").replace(WORDS).to_numpy().astype(np.str_)
    codes = table.floats(name)
    known = (codes >= 0) & (codes < len(CODES))
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise FormatError(
            table.path,
            f"label {codes[row]:g} in column '{name}' is not one of 0 to 4",
            "Mend the line.",
            table.line_of(row),
        )
    return np.array(CODES)[codes.astype(np.int64)]


def is_arff(head: Head) -> bool:
    """Whether a file is ARFF, by its suffix and its first lines."""
    return head.name.endswith(".arff") and "@relation" in head.text.lower()


def scan(path: Path, root: Path, screen: Screen | None = None, **options: object) -> list[Handle]:
    """One recording per file: the person is the folder, the stimulus the file name, unless said
    otherwise.
    """
    names = naming_options(**options).names(path, root)
    return [names.handle(partial(load, path, names, screen), path)]


_LABELS = r"(?:hand)?labeller_?(?:\d{1,2}|final)?|(?:primary|secondary)_label|em_type|label"
_MEASURED = "x|y|confidence|x_head|y_head|angle_deg_head"
SCRUB = Scrub(
    LineRules(
        (
            (r"%(?!@).*", None),
            (r"(?i:@RELATION\s+['\"]?(?P<name>gaze_360|gaze_labels|gaze|gazecom)\b['\"]?)", ""),
            (r"(?i:@RELATION)\b.*", "@RELATION recording"),
            (
                r"(?i:%@METADATA\s+(?:(?:width|height)_(?:px|mm)|distance_mm"
                r"|fov_(?:width|height)_(?:rad|deg)))\s+\d{1,5}(?:\.\d{1,6})?",
                "",
            ),
            (rf"(?i:@ATTRIBUTE\s+['\"]?(?:time|{_MEASURED}|{_LABELS})['\"]?\s+\w+)", ""),
            (rf"(?i:@ATTRIBUTE\s+['\"]?(?:{_LABELS})['\"]?)\s+\{{(?P<events>.*)\}}", ""),
        ),
        TableRules(
            keep=_MEASURED.replace("_", ""),
            shift="time",
            event=_LABELS.replace("_", ""),
            words=frozenset({*WORDS, *CODES, "saccade", "blink", "pso", "head_movement", *"01234"}),
            missing="nan",
        ),
        begins=r"(?i:@DATA)\s*$",
    ),
    names=lambda path, root: _parsed(path)[1].names,
)
FORMAT = Format(
    "arff",
    "ARFF with %@METADATA lines",
    is_arff,
    scan,
    frozenset({"screen", *OPTIONS}),
    scrub=SCRUB,
)


def sniff_gazecom(head: Head) -> bool:
    """ARFF with hand labels on a flat picture."""
    text = head.text.lower()
    return is_arff(head) and "handlabeller" in text and "x_head" not in text


def scan_gazecom(path: Path, root: Path) -> Iterable[Handle]:
    """Person and stimulus from `<person>_<clip>` inside folder `<clip>`."""
    names = Names(*person_in_folder(path), task="free-viewing")
    return [names.handle(partial(load, path, names), path)]


GAZECOM = Format(
    "gazecom",
    "GazeCom with hand labels (ARFF)",
    sniff_gazecom,
    scan_gazecom,
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
    scrub=PUBLISHED,
)


#: Folders that hold the same recordings once more.
PARTS = re.compile(r"^(gaze|ground_truth|output_.+)$", re.IGNORECASE)
_PERSON = re.compile(
    r"^(vp|p|s|sub|subj|subject|user|participant|obs|observer)?[-_ ]?\d+$", re.IGNORECASE
)
_YOUTUBE = re.compile(r"[-_ ]([A-Za-z0-9_-]{11})$")
#: Folders that divide the recordings.
SPLITS = frozenset({"train", "training", "test", "testing"})


def sniff_em360(head: Head) -> bool:
    """ARFF of the relation gaze_360, or with a head in it."""
    text = head.text.lower()
    known = re.search(r"@relation\s+'?gaze_360", text) is not None or "x_head" in text
    return is_arff(head) and known


def scan_em360(
    path: Path, root: Path, part: str | None = None, synthetic: bool = True
) -> Iterable[Handle]:
    """One recording per file of the chosen part."""
    if not isinstance(synthetic, bool):
        checks.refuse("Format 360-em", "synthetic", "True or False", synthetic)
    inner = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    own = next((p for p in inner if PARTS.match(p)), "")
    parts = sorted(p.name for p in root.iterdir() if p.is_dir() and PARTS.match(p.name))
    if part is not None and part != "all" and (parts or own):
        checks.one_of("Format 360-em", "part", part, [*parts, *([own] if own else []), "all"])
    usual = [p for p in ("gaze", "ground_truth") if p in parts]
    wanted = part or next(iter([*usual, *parts]), "all")
    person, video = person_and_video(path)
    other = own in parts and wanted not in ("all", own)
    if other or (not synthetic and video == _synthetic(root)):
        return []
    names = Names(person, video, own if part == "all" and own else "1", "free-viewing")
    return [names.handle(partial(load, path, names), path)]


@lru_cache(maxsize=4)
def _synthetic(root: Path) -> str:
    """The name of the authors' own clip; empty where the names do not tell."""
    videos = {person_and_video(p)[1] for p in root.rglob("*.arff*")}
    called = [v for v in videos if "synth" in v.lower()]
    others = [v for v in videos if not _on_youtube(v)]
    found = called or (others if len(videos) > 2 else [])
    return found[0] if len(found) == 1 else ""


def _on_youtube(video: str) -> bool:
    """Whether a name ends in an identifier of YouTube: 11 characters that are no plain word."""
    match = _YOUTUBE.search(video)
    return match is not None and any(c.isdigit() or c.isupper() for c in match[1])


def person_and_video(path: Path) -> tuple[str, str]:
    """(person, video) of a path, by the rules of the module's docstring."""
    name, folder = stem(path), folder_name(path)
    if PARTS.match(folder) or folder.lower() in SPLITS:
        person, _, video = name.partition("_")
        return person or name, video or name
    if _PERSON.match(folder):
        return folder, name.removeprefix(f"{folder}_").removesuffix(f"_{folder}")
    if name.startswith(f"{folder}_") and len(name) > len(folder) + 1:
        return name[len(folder) + 1 :], folder
    return person_in_folder(path)


def people_em360(root: Path, files: Iterable[Path] = ()) -> Mapping[str, Attributes]:
    """Attributes of `participant_info.csv`, in the folder or one or two above it; none where it is
    missing. A person whose name is a number is also found with leading zeros.
    """
    folders = (root, root.parent, root.parent.parent)
    place = next((p for f in folders if (p := f / "participant_info.csv").is_file()), None)
    table = {} if place is None else read_people(place)
    by_person: dict[str, Attributes] = {}
    for person, attributes in table.items():
        for width in (0, 2, 3) if person.isdigit() else (0,):
            by_person[person.zfill(width)] = attributes
    return by_person


EM360 = Format(
    "360-em",
    "360_em: head and gaze in 360-degree videos, two tiers of labels (ARFF)",
    sniff_em360,
    scan_em360,
    frozenset({"part", "synthetic"}),
    dataset=Dataset(
        title="360_em",
        publisher=(
            "Agtzidis, Startsev, Dorr (TU Munich), gin.g-node.org/ioannis.agtzidis/360_em_dataset"
        ),
        licence="free for research; the authors ask for citation",
        citation=(
            "Agtzidis, Startsev, Dorr 2019, 360-degree video gaze behaviour: a ground-truth data"
            " set and a classification algorithm for eye movements, ACM Multimedia"
        ),
        layout=(
            "{gaze,ground_truth,output_I-S5T_*}/<video>/<person>_<video>.arff[.gz],"
            " participant_info.csv"
        ),
    ),
    people=people_em360,
    scrub=PUBLISHED,
)
