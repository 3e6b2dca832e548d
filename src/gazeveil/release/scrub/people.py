"""Tables of people: labels for names, and the attributes that the user keeps by name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from gazeveil.io.parsing.table import find_separator, key
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import Lines, column_names

#: Columns that name people, as :func:`gazeveil.io.people.read_people` finds them.
PERSON = (
    "person",
    "participantid",
    "participant",
    "subjectid",
    "subject",
    "userid",
    "user",
    "observer",
    "id",
)
_GAZE = ("timestamp", "gaze", "por", "pupil", "onset")


def is_people_table(lines: Lines, stem: str) -> bool:
    """Whether a table has a column of people and none of gaze or times.

    A column `id` alone may count anything: it counts people in a file that is called so.
    """
    names = [key(name) for name in column_names(lines)]
    known = PERSON if is_people_file(stem) else PERSON[:-1]
    return any(p in names for p in known) and not any(word in n for n in names for word in _GAZE)


def is_people_file(stem: str) -> bool:
    """Whether a file is called after people."""
    return stem.lower() in ("participants", "people", "subjects", "demographics")


def scrubbed_people(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """The column of people as labels, and the columns that the user keeps."""
    names = column_names(lines)
    separator = find_separator(next((line for line in lines() if line.strip()), "")) or ","
    keys = [key(name) for name in names]
    person = next((keys.index(p) for p in PERSON if p in keys), 0)
    kept = [i for i, n in enumerate(names) if n.strip().lower() in job.keep_fields and i != person]
    job.done["attributes left out"] += len(names) - 1 - len(kept)
    rows = csv.reader((line for line in lines() if line.strip()), delimiter=separator)
    yield _line([names[person], *(names[i] for i in kept)], separator)
    next(rows, None)
    for cells in rows:
        if person < len(cells):
            values = [cells[i] if i < len(cells) else "" for i in kept]
            yield _line([label_of_person(cells[person], job), *values], separator)


def label_of_person(text: str, job: ScrubJob) -> str:
    """A label; BIDS has `sub-` before it, in file names too."""
    plain = text.strip()
    return f"sub-{job.label(plain[4:])}" if plain.startswith("sub-") else job.label(plain)


def _line(cells: list[str], separator: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="").writerow(cells)
    return buffer.getvalue()
