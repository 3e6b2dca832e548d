"""The conformance kit of formats: the sample is read whole, damaged files are refused in words."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gazeveil.conformance import CheckResult, run_kit
from gazeveil.errors import GazeveilError
from gazeveil.io.reading import read
from gazeveil.io.registry import Format, in_sniffing_order
from gazeveil.io.source import Head

_HOSTILE = (b"", b"\x00" * 64, b"\xff\xfe\xfd" * 40, b"a,b\n" * 3, b"{" * 2000, b"PK\x03\x04")


def check_format(form: Format, sample: Path) -> list[CheckResult]:
    """Run the kit on a format, with a small file or folder of it."""

    def reads_its_sample(_: Format) -> Iterator[str]:
        cohort = read(sample, form)
        if not len(cohort):
            yield "its sample holds no recording"
        for recording in cohort:
            if not len(recording):
                yield f"the {recording.title} has no sample"
            if recording.valid.any() and not np.isfinite(recording.x_deg[recording.valid]).all():
                yield f"the {recording.title} has valid samples without a place"

    def loses_no_row(_: Format) -> Iterator[str]:
        for recording in read(sample, form):
            rows = recording.counts.get("rows")
            if rows is None:
                yield "a recording must say in counts['rows'] how many rows its file has"
            elif rows != len(recording):
                yield f"{rows} rows became {len(recording)} samples"

    def reads_the_same_twice(_: Format) -> Iterator[str]:
        for first, second in zip(read(sample, form), read(sample, form), strict=True):
            same = first.key == second.key and np.array_equal(first.t_ns, second.t_ns)
            if not same or not np.array_equal(first.x_deg, second.x_deg, equal_nan=True):
                yield f"reading the {first.title} again gives another recording"

    def knows_its_own_files(_: Format) -> Iterator[str]:
        if sample.is_dir() and form.sniff_folder is not None:
            if not form.sniff_folder(sample):
                yield "it does not know its sample"
            return
        files = [sample] if sample.is_file() else [p for p in sample.rglob("*") if p.is_file()]
        heads = [Head.of(path) for path in files]
        if not any(form.sniff(head) for head in heads):
            yield "it does not know its sample"
        for head in heads:
            first = next((f for f in in_sniffing_order() if f.sniff(head)), None)
            if form.sniff(head) and first is not None and first.name != form.name:
                yield f"the format {first.name} takes its sample first"

    def leaves_other_files_alone(_: Format) -> Iterator[str]:
        with TemporaryDirectory() as folder:
            for number, data in enumerate(_HOSTILE):
                path = Path(folder) / f"other{number}.dat"
                path.write_bytes(data)
                if form.sniff(Head.of(path)):
                    yield f"it claims a file that begins with {data[:8]!r}"

    def refuses_damaged_files_in_words(_: Format) -> Iterator[str]:
        with TemporaryDirectory() as folder:
            yield from _damaged(form, sample, Path(folder))

    kit: tuple[Callable[[Format], Iterator[str]], ...] = (
        reads_its_sample,
        loses_no_row,
        reads_the_same_twice,
        knows_its_own_files,
        leaves_other_files_alone,
        refuses_damaged_files_in_words,
    )
    return run_kit(kit, form)


def _damaged(form: Format, sample: Path, folder: Path) -> Iterator[str]:
    """Cut the sample short, put bytes into it, and replace it; each copy is read or refused."""
    copy = folder / sample.name
    if sample.is_dir():
        shutil.copytree(sample, copy)
    else:
        shutil.copy(sample, copy)
    files = [copy] if copy.is_file() else sorted(p for p in copy.rglob("*") if p.is_file())
    for file in files[:3]:
        whole = file.read_bytes()
        noise = np.random.default_rng(0).bytes(64)
        middle = len(whole) // 2
        cut = {"cut short": whole[:middle], "damaged": whole[:middle] + noise + whole[middle:]}
        for name, data in {**cut, **{f"{d[:8]!r}": d for d in _HOSTILE}}.items():
            file.write_bytes(data)
            try:
                list(read(copy, form))
            except GazeveilError as error:
                if len(str(error)) < 20:
                    yield f"a file that is {name} is refused without saying why"
            except Exception as error:
                yield f"a file that is {name} gives {type(error).__name__} instead of a sentence"
        file.write_bytes(whole)
