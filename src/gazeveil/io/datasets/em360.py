"""360_em: 13 people, 15 equirectangular videos, head and gaze at 120 Hz, two tiers of labels; ARFF.

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

from gazeveil import checks
from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.io.datasets.layout import folder_name, numbers, person_in_folder
from gazeveil.io.parsing.table import read_table
from gazeveil.io.registry import Dataset, Format
from gazeveil.io.source import Head, stem
from gazeveil.io.vendors.arff import is_arff, load

#: Folders that hold the same recordings once more.
PARTS = re.compile(r"^(gaze|ground_truth|output_.+)$", re.IGNORECASE)
_PERSON = re.compile(
    r"^(vp|p|s|sub|subj|subject|user|participant|obs|observer)?[-_ ]?\d+$", re.IGNORECASE
)
_YOUTUBE = re.compile(r"[-_ ]([A-Za-z0-9_-]{11})$")
#: Folders that divide the recordings.
SPLITS = frozenset({"train", "training", "test", "testing"})


def sniff(head: Head) -> bool:
    """ARFF of the relation gaze_360, or with a head in it."""
    if not is_arff(head):
        return False
    text = head.text.lower()
    return bool(re.search(r"@relation\s+'?gaze_360", text)) or "x_head" in text


def scan(
    path: Path, root: Path, part: str | None = None, synthetic: bool = True
) -> Iterable[Handle]:
    """One recording per file of the chosen part."""
    own = _part_of(path, root)
    parts = sorted(p.name for p in root.iterdir() if p.is_dir() and PARTS.match(p.name))
    if part is not None and part != "all" and (parts or own):
        checks.one_of("Format 360-em", "part", part, [*parts, *([own] if own else []), "all"])
    wanted = part or (
        "gaze"
        if "gaze" in parts
        else "ground_truth"
        if "ground_truth" in parts
        else parts[0]
        if parts
        else "all"
    )
    if own in parts and wanted not in ("all", own):
        return []
    person, video = person_and_video(path)
    if not isinstance(synthetic, bool):
        checks.refuse("Format 360-em", "synthetic", "True or False", synthetic)
    if not synthetic and video == _synthetic(root):
        return []
    session = own if part == "all" and own else "1"
    return [
        Handle(
            person,
            video,
            partial(load, path, person, video, None, session, "free-viewing"),
            session,
            "free-viewing",
            source=str(path),
        )
    ]


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


def _part_of(path: Path, root: Path) -> str:
    inner = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return next((p for p in inner if PARTS.match(p)), "")


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


def people(root: Path, files: Iterable[Path] = ()) -> Mapping[str, Attributes]:
    """Attributes of `participant_info.csv`, in the folder or one or two above it; none where it is
    missing.

    A person whose name is a number is also found with leading zeros.
    """
    place = next(
        (
            p
            for f in (root, root.parent, root.parent.parent)
            if (p := f / "participant_info.csv").is_file()
        ),
        None,
    )
    if place is None:
        return {}
    table = read_table(place, max(",;\t", key=Head.of(place).first.count))
    names = table.names
    by_person: dict[str, Attributes] = {}
    rows = zip(*(table.words(n) for n in names), strict=True)
    for person, *values in rows:
        attributes = {
            n.strip().lower(): _value(v) for n, v in zip(names[1:], values, strict=True) if v
        }
        for alias in {person, person.zfill(2), person.zfill(3)} if person.isdigit() else {person}:
            by_person[alias] = attributes
    return by_person


def _value(text: str) -> object:
    parsed = numbers(text)
    if parsed is None or len(parsed) != 1:
        return text
    return int(parsed[0]) if parsed[0].is_integer() else parsed[0]


FORMAT = Format(
    "360-em",
    "360_em: head and gaze in 360-degree videos, two tiers of labels (ARFF)",
    sniff,
    scan,
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
    people=people,
)
