"""The canonical folder: one Parquet file per recording, and `cohort.json` that lists them.

::

    folder/
      cohort.json                    version, name, people, and per recording: file, person,
      stimulus, session, task, samples, rate recordings/000001.parquet      t_ns, x_deg, y_deg,
      valid and the channels there are; everything else as JSON in the file's metadata
      recordings/000001.events.parquet   events that came with the recording, if any

Writing and reading back gives the same recording bit for bit, except for `truth`, which never
leaves the simulator. The folder is written beside its final name and moved there when complete, so
a crash leaves no half cohort.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError, GazeveilError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import FILE, KEY_NAMES, Fact, Message, Recording
from gazeveil.io.registry import Format, Scrub
from gazeveil.io.source import Head, plain_os_errors, staged

INDEX = "cohort.json"

#: What certifies a folder that is a release.
CERTIFICATE = ("PRIVACY.json", "PRIVACY.md", "PRIVACY.sig", "publish.toml")

VERSION = 1
_ROW_GROUP = 1 << 18

# What polars raises on a file that was cut or overwritten; some damage ends in a panic of its own,
# which is no Exception.
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)

#: Channel -> columns; a scalar channel keeps its own name.
CHANNEL_COLUMNS = {
    "left_deg": ("left_x_deg", "left_y_deg"),
    "right_deg": ("right_x_deg", "right_y_deg"),
    "head_deg": ("head_x_deg", "head_y_deg", "head_roll_deg"),
    "eye_in_head_deg": ("eye_x_deg", "eye_y_deg"),
    "pupil": ("pupil",),
    "confidence": ("confidence",),
}


def write(
    cohort: Cohort,
    path: str | Path,
    progress: Callable[[Iterable[Recording]], Iterable[Recording]] = lambda r: r,
) -> Path:
    """Write a cohort as a canonical folder, one recording at a time.

    Parameters
    ----------
    cohort : Cohort
        What to write.
    path : path
        A folder that does not exist yet or is empty.
    progress : callable
        Wraps the iteration, for a progress bar.

    Raises
    ------
    DataError
        If the folder exists and is not empty: releases are never mixed.
    """
    with staged(path) as folder:
        (folder / "recordings").mkdir()
        rows: list[Mapping[str, object]] = []
        for number, recording in enumerate(progress(cohort), start=1):
            file = f"recordings/{number:06d}.parquet"
            write_recording(recording, folder / file)
            rows.append(index_row(recording, file))
        write_index(folder, rows, cohort.people, cohort.name)
    return Path(path)


def index_row(recording: Recording, file: str) -> dict[str, object]:
    """The line of the index about a recording in that file."""
    rate = None if np.isnan(recording.rate_hz) else recording.rate_hz
    # What was taken from a path is no more certain for being written down.
    guessed = {n: f for n, f in recording.facts.items() if n in KEY_NAMES and f.origin != FILE}
    return {
        "file": file,
        **dict(zip(KEY_NAMES, recording.key, strict=True)),
        "samples": len(recording),
        "rate_hz": rate,
        **({"facts": guessed} if guessed else {}),
    }


def write_index(
    folder: Path,
    rows: Iterable[Mapping[str, object]],
    people: Mapping[str, Attributes],
    name: str = "",
) -> None:
    """Write the index of a canonical folder, from lines of :func:`index_row`."""
    index = {
        "format": "gazeveil-cohort",
        "version": VERSION,
        "name": name,
        "people": {p: dict(a) for p, a in people.items()},
        "recordings": [dict(row) for row in rows],
    }
    (folder / INDEX).write_text(
        json.dumps(index, indent=1, ensure_ascii=False, default=_plain), encoding="utf-8"
    )


def write_recording(recording: Recording, path: Path) -> None:
    """Write one recording as one Parquet file, its events beside it."""
    columns: dict[str, NDArray[np.generic]] = {
        n: getattr(recording, n) for n in ("t_ns", "x_deg", "y_deg", "valid")
    }
    for channel, names in CHANNEL_COLUMNS.items():
        values = getattr(recording, channel)
        if values is not None:
            columns |= {n: values if len(names) == 1 else values[:, i] for i, n in enumerate(names)}
    columns |= {f"label:{k}": v for k, v in recording.labels.items()}
    plain: dict[str, object] = {}
    for k, v in recording.metadata.items():
        # Per-sample extras (a moving target, say) are columns of their own.
        if isinstance(v, np.ndarray) and v.ndim in (1, 2) and len(v) == len(recording) and len(v):
            columns |= (
                {f"meta:{k}": v}
                if v.ndim == 1
                else {f"meta:{k}:{i}": v[:, i] for i in range(v.shape[1])}
            )
        else:
            plain[k] = v
    header = {
        "version": VERSION,
        "person": recording.person,
        "stimulus": recording.stimulus,
        "session": recording.session,
        "task": recording.task,
        "rate_hz": None if np.isnan(recording.rate_hz) else recording.rate_hz,
        "space": _space_out(recording.space),
        "messages": [[m.t_ns, m.text] for m in recording.messages],
        "counts": dict(recording.counts),
        "metadata": plain,
        "events": recording.events is not None,
    }
    text = json.dumps(header, ensure_ascii=False, default=_plain)
    with plain_os_errors(path):
        pl.DataFrame(columns).write_parquet(
            path,
            row_group_size=_ROW_GROUP,
            metadata={"gazeveil": text},
            compression="zstd",
            compression_level=1,
        )
        if recording.events is not None:
            pl.DataFrame(recording.events.columns()).write_parquet(
                _events_path(path), metadata={"source": recording.events.source}
            )


def load(path: Path, start: int = 0, length: int | None = None) -> Recording:
    """Read one recording, or samples `start` to `start + length` of it.

    Raises
    ------
    FormatError
        If the file is cut, or is Parquet that :func:`write_recording` did not write.
    """
    try:
        return _load(path, start, length)
    except FormatError:
        raise
    except GazeveilError as error:
        # What a recording refuses does not know its file; pieces of a long one come this way alone.
        raise FormatError(path, str(error).rstrip("."), "Mend the file or leave it out.") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # A header or a column that is not as `write_recording` writes it.
        raise _damaged(path) from error


def _load(path: Path, start: int, length: int | None) -> Recording:
    header = _header(path)
    try:
        frame = pl.scan_parquet(path).slice(start, length).collect()
    except _BROKEN as error:
        raise _damaged(path) from error
    get = {n: frame[n].to_numpy() for n in frame.columns}
    channels: dict[str, Floats] = {
        channel: get[names[0]] if len(names) == 1 else np.stack([get[n] for n in names], axis=1)
        for channel, names in CHANNEL_COLUMNS.items()
        if all(n in get for n in names)
    }
    metadata = dict(header["metadata"])  # type: ignore[call-overload]
    for name in [n for n in get if n.startswith("meta:")]:
        parts = name.split(":")
        if len(parts) == 2:
            metadata[parts[1]] = get[name]
        elif parts[2] == "0":
            several = [n for n in get if n.startswith(f"meta:{parts[1]}:")]
            metadata[parts[1]] = np.stack([get[n] for n in several], axis=1)
    rate = header["rate_hz"]
    return Recording(
        person=str(header["person"]),
        stimulus=str(header["stimulus"]),
        session=str(header["session"]),
        task=str(header["task"]),
        t_ns=get["t_ns"],
        x_deg=get["x_deg"],
        y_deg=get["y_deg"],
        valid=get["valid"],
        space=_space_in(path, header["space"]),
        rate_hz=float("nan") if rate is None else float(rate),  # type: ignore[arg-type]
        labels={n[6:]: get[n].astype(np.str_) for n in get if n.startswith("label:")},
        events=(
            _read_events(_events_path(path))
            if header["events"] and start == 0 and length is None
            else None
        ),
        messages=tuple(
            Message(int(t), str(m))
            for t, m in header["messages"]  # type: ignore[attr-defined]
        ),
        counts=header["counts"],  # type: ignore[arg-type]
        metadata=metadata,
        **channels,
    )


def chunks(path: Path, samples: int, size: int) -> Iterator[Recording]:
    """The recording in pieces of `size` samples, so that a long one never has to fit in memory."""
    for start in range(0, max(samples, 1), size):
        yield load(path, start, size)


def _header(path: Path) -> dict[str, object]:
    try:
        text = pl.read_parquet_metadata(path).get("gazeveil")
    except _BROKEN as error:
        raise _damaged(path) from error
    if text is None:
        raise FormatError(
            path,
            "it is Parquet that Gazeveil did not write",
            "Read it as a data frame and give that to gazeveil.Cohort.from_frame.",
        )
    try:
        header = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(header, dict):
        raise _damaged(path)
    return header


def _damaged(path: Path) -> FormatError:
    return FormatError(
        path, "the Parquet file is cut or damaged", "Copy it again, or write the cohort again."
    )


def _events_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".parquet") + ".events.parquet")


def _read_events(path: Path) -> Events:
    try:
        frame = pl.read_parquet(path)
        source = pl.read_parquet_metadata(path).get("source", "")
    except _BROKEN as error:
        raise FormatError(
            path,
            "the events of this recording are missing or damaged",
            "Copy the folder again, or write the cohort again.",
        ) from error
    return Events(**{n: frame[n].to_numpy() for n in frame.columns}, source=source)


def _space_out(space: Space) -> dict[str, object]:
    if isinstance(space, Sphere):
        return {"kind": "sphere"}
    names = ("width_px", "height_px", "width_mm", "height_mm", "distance_mm")
    return {"kind": "screen", **{n: getattr(space, n) for n in names}}


def _space_in(path: Path, stored: object) -> Space:
    if isinstance(stored, Mapping) and stored.get("kind") == "sphere":
        return Sphere()
    if isinstance(stored, Mapping) and stored.get("kind") == "screen":
        return Screen(**{k: float(v) for k, v in stored.items() if k != "kind"})
    raise FormatError(
        path,
        f"space {stored!r} is not known",
        "The file was written by a newer version; upgrade Gazeveil.",
    )


def _plain(value: object) -> object:
    """Numpy values and paths as JSON has them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _index(folder: Path) -> dict[str, object]:
    file = folder / INDEX
    try:
        index = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FormatError(
            file, "the index of the cohort is cut or damaged", "Copy the folder again."
        ) from error
    if (
        not isinstance(index, dict)
        or index.get("format") != "gazeveil-cohort"
        or not isinstance(index.get("recordings"), list)
    ):
        raise FormatError(
            file, "this is not the index of a Gazeveil cohort", "Remove it or name another format."
        )
    if index.get("version") != VERSION:
        raise FormatError(
            file, f"version {index.get('version')} of the folder is not known", "Upgrade Gazeveil."
        )
    return index


def scan(path: Path, root: Path) -> Iterator[Handle]:
    """Handles of a canonical folder, or of one Parquet file."""
    if path.is_file():
        header = _header(path)
        person, stimulus, session, task = (str(header.get(n, "")) for n in KEY_NAMES)
        load_all, load_parts = partial(load, path), partial(_chunks_of, path)
        yield Handle(person, stimulus, load_all, session, task, str(path), load_parts)
        return
    for row in _index(path)["recordings"]:  # type: ignore[attr-defined]
        try:
            file, samples = path / row["file"], int(row["samples"])
            person, stimulus, session, task = (str(row[n]) for n in KEY_NAMES)
            facts = {str(n): Fact(*f) for n, f in row.get("facts", {}).items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(
                path / INDEX, "an entry of the index is not whole", "Copy the folder again."
            ) from error
        if path.resolve() not in file.resolve().parents:
            raise FormatError(
                path / INDEX,
                f"the index names a file outside the folder ({row['file']})",
                "Do not use this folder.",
            )
        load_all, load_parts = partial(load, file), partial(chunks, file, samples)
        yield Handle(person, stimulus, load_all, session, task, str(file), load_parts, facts=facts)


def _chunks_of(path: Path, size: int) -> Iterator[Recording]:
    yield from chunks(path, int(pl.scan_parquet(path).select(pl.len()).collect().item()), size)


def people(root: Path, files: Iterable[Path] = ()) -> Mapping[str, Attributes]:
    """Attributes of the people of a canonical folder."""
    if not (root / INDEX).exists():
        return {}
    stored = _index(root).get("people", {})
    return (
        {str(p): a for p, a in stored.items() if isinstance(a, dict)}
        if isinstance(stored, dict)
        else {}
    )


def foreign_files(folder: Path) -> Iterable[Path]:
    """Yield files in a canonical folder that its index does not name.

    Examples are notes, or a recording added by hand.
    """
    indexed = {folder / name for name in (INDEX, *CERTIFICATE)}
    for row in _index(folder)["recordings"]:  # type: ignore[attr-defined]
        file = folder / row["file"]
        indexed |= {file, _events_path(file)}
    return sorted(p for p in folder.rglob("*") if p.is_file() and p not in indexed)


def sniff(head: Head) -> bool:
    """Parquet's magic bytes; the files of events beside recordings are not recordings."""
    return head.data.startswith(b"PAR1") and not head.name.endswith(".events.parquet")


def sniff_folder(folder: Path) -> bool:
    """A folder with an index."""
    return (folder / INDEX).is_file()


FORMAT = Format(
    "parquet",
    "canonical Parquet folder",
    sniff,
    scan,
    sniff_folder=sniff_folder,
    people=people,
    foreign_files=foreign_files,
    scrub=Scrub(
        instead="Parquet is binary: `publish` reads it and releases it without identifiers"
    ),
)
