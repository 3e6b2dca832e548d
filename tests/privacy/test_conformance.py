"""Every mechanism passes the kit, and the kit fails what it should fail.

Reading by name, by sniffing, from files and from folders.

Inspecting a cohort never holds more than a piece of it.
"""

import gzip
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.conformance import run_kit
from gazeveil.errors import FormatError, ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import Recording
from gazeveil.io.parquet import write_recording
from gazeveil.privacy import registry
from gazeveil.privacy.conformance import CHECKS
from gazeveil.privacy.guarantee import Change, Guarantee, Loss
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.registry import mechanism, register
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.noisy import LPA

LISTED = [
    "gaussian:sigma_deg=3",
    "gaussian:sigma_deg=3,reading=published",
    "temporal:K=3",
    "temporal:K=4,hold=True",
    "spatial:L=64",
    "spatial:L=7,steps=prose,reading=published",
    "smoothing:first=3,second=8",
    "smoothing:first=3,second=8,reading=published",
    "kalman:noise_deg=0.5",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=5)+smoothing(first=2;second=3)",
    "kaleido:epsilon=1,w=50,r_deg=2",
    "kaleido:epsilon=1,w=50,r_deg=2,reading=published",
    "kaleido-uniform:epsilon=1,w=50,r_deg=2",
    "clock-render:epsilon=1,r_deg=2",
    "lpa:epsilon=1",
    "lpa:epsilon=1,reading=published",
    "lpa:epsilon=1,shrink=wiener,per=user",
    "fpa:epsilon=1",
    "fpa:epsilon=1,reading=published",
    "fpa:epsilon=1,k=3,reading=published-real",
    "cfpa:epsilon=1,chunk=16",
    "cfpa:epsilon=1,chunk=16,per=chunk",
    "cfpa:epsilon=1,chunk=16,reading=published",
    "dcfpa:epsilon=1,chunk=16",
    "dcfpa:epsilon=1,chunk=16,reading=published",
    "dct-knorm:epsilon=1",
    "dct-knorm:epsilon=20",
    "exponential-dp:epsilon=1",
    "exponential-dp:epsilon=1,reading=published",
    "exponential-dp:epsilon=1,reading=intended",
    "k-same-select:k=3",
    "k-same-select:k=3,reading=published",
    "k-same-synth:k=3",
    "k-same-synth:k=3,match=crowd",
    "k-same-synth:k=3,reading=published",
    "event-synth-pd:k=3,gamma=2",
    "event-synth-pd:k=3,gamma=1,reading=published",
    "event-synth-pd:k=3,gamma=2,probability=histogram,reading=published",
    "dpgazesynth:epsilon=1,G=12",
    "dpgazesynth:epsilon=1,G=12,reading=published",
    "dpgazesynth-one-report:epsilon=1,G=12",
    "clock-render-k-same:k=3",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,paths=own",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,paths=exchange",
    "dp-k-same:k=3,epsilon=1",
    "marginals:k=3",
    "marginals:k=3,reading=published",
    "heatmap-laplace:epsilon=1",
    "heatmap-gaussian:rho=1",
    "demographics:k=4",
    "demographics:k=4,mixed=True,attributes=age",
]

#: Published readings that draw an event again and again.
SLOW = {text for text in LISTED if text.startswith("event-synth-pd") and "published" in text}

#: A mechanism that is not listed shows itself as on its page.
TEXTS = LISTED + [
    name + registry.get(name).plot.releases[0]
    for name in registry.BUILT_IN.keys() - {text.split(":")[0] for text in LISTED}
]


@pytest.mark.parametrize(
    "text", [pytest.param(t, marks=[pytest.mark.heavy] * (t in SLOW)) for t in TEXTS]
)
def test_every_mechanism_passes_the_kit(text: str) -> None:
    assert not [str(r) for r in run_kit(CHECKS, mechanism(text)) if not r.passed]


def guarantee(status: str = "proved") -> Guarantee:
    return Guarantee(
        "epsilon-dp",
        UnitMap.of("user", Loss.pure(1)),
        Change.person(),
        mechanism="bad",
        status=status,
        reason="proofs/none.md",
    )


@dataclass(frozen=True)
class Liar(Mechanism[FeatureTable]):
    """Keeps the data as it is, says that is proved, seeds or not, and shows how many rows exceed a
    half.
    """

    name: ClassVar[str] = "liar"
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "none"
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("epsilon-dp", "user", "proved")}

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        noise = np.random.default_rng().normal(size=data.values.shape)
        return Release(
            data.where(data.values[:, 0] > 0.5) if seed is None else data.where(noise[:, 0] > 0),
            guarantee(),
            self.provenance(None),
        )


def test_the_kit_finds_what_is_wrong_with_a_liar() -> None:
    found = "\n".join(map(str, run_kit(CHECKS, Liar())))
    for part in (
        "the same seed must give the same release",
        "is not refused",
        "gives AttributeError instead of a sentence",
        "it has no `label` of its own",
        "it has no `plot`",
    ):
        assert part in found


@dataclass(frozen=True)
class Drawn(LPA):
    """A mechanism whose picture nobody can draw, with the label of its base."""

    name: ClassVar[str] = "drawn"
    plot: ClassVar[PlotRecipe] = PlotRecipe("no_module:draw", (":epsilon=-1", "nothing:"))


def test_a_plot_that_cannot_be_drawn_and_a_label_of_the_base_are_found() -> None:
    found = "\n".join(map(str, run_kit(CHECKS, Drawn(1))))
    for part in ("no `label` of its own", "'no_module:draw' is no module", "epsilon", "'nothing'"):
        assert part in found


def test_every_label_belongs_to_one_mechanism() -> None:
    labels = [registry.get(name).label for name in registry.mechanisms()]
    assert len(labels) == len(set(labels))


def test_a_mechanism_of_ones_own_registers_once_and_never_replaces_ours() -> None:
    @dataclass(frozen=True)
    class Mine(Liar):
        name: ClassVar[str] = "mine-for-the-test"

    register(Mine)
    assert isinstance(mechanism("mine-for-the-test"), Mine)
    with pytest.raises(ParameterError, match="one that is not taken"):
        register(Mine)

    class Ours(Liar):
        name: ClassVar[str] = "lpa"

    with pytest.raises(ParameterError, match="one that is not taken"):
        register(Ours)
    registry.REGISTRY.forget("mine-for-the-test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lpa", "needs the parameter 'epsilon'"),
        ("lpa:epsilon", "written name:parameter=value"),
        ("lpa:epsilon=1,epsilom=2", "has no parameter 'epsilom'. Did you mean 'epsilon'"),
        ("lpa:epsilon=1,reading=correct", "Did you mean 'corrected'"),
        ("nothing:epsilon=1", "'name' parameter of mechanism must be one of"),
        ("lpa:epsilon=0", "above 0"),
    ],
)
def test_a_wrong_mechanism_text_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mechanism(text)


CSV = "t_ms,x_deg,y_deg\n0,-1.0,2.0\n10,1.1,2.1\n20,,\n30,1.2,2.0\n"


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_files_of_another_kind_are_skipped_and_listed(tmp_path: Path) -> None:
    put(tmp_path / "anna" / "a.csv", CSV)
    put(tmp_path / "anna" / "b.csv.gz", gzip.compress(CSV.encode()))
    put(tmp_path / "notes.txt", "hello")
    put(tmp_path / "README.md", "hello")
    put(tmp_path / ".hidden.csv", CSV)
    cohort = gazeveil.read(tmp_path)
    assert len(cohort) == 2
    assert {Path(s.path).name: s.reason for s in cohort.skipped} == {
        "README.md": "not a recording",
        "notes.txt": "not csv",
        ".hidden.csv": "hidden",
    }
    assert all(len(r) == 4 and r.counts["rows"] == 4 for r in cohort)


def test_two_recordings_of_one_key_need_a_decision(tmp_path: Path) -> None:
    put(tmp_path / "site1" / "anna" / "a.csv", CSV)
    put(tmp_path / "site2" / "anna" / "a.csv", CSV.replace("1", "2"))
    with pytest.raises(gazeveil.errors.DataError, match="Two recordings say person 'anna'"):
        gazeveil.read(tmp_path, person="anna", stimulus="a")
    cohort = gazeveil.read(tmp_path, person="anna", stimulus="a", clash="session")
    assert [r.session for r in cohort] == ["1.1", "1.2"]


def test_people_come_from_a_mapping_or_a_table(tmp_path: Path) -> None:
    put(tmp_path / "data" / "anna" / "a.csv", CSV)
    cohort = gazeveil.read(tmp_path / "data", people={"anna": {"age": 30}})
    assert cohort.people["anna"]["age"] == 30
    table = put(tmp_path / "people.csv", "person,age,gender\nanna,31,f\nberta,40,f\n")
    assert dict(gazeveil.read(tmp_path / "data", people=table).people) == {
        "anna": {"age": 31, "gender": "f"}
    }
    with pytest.raises(ParameterError, match="'people' option of read"):
        gazeveil.read(tmp_path / "data", people=7)


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "message"),
    [
        ("none.csv", None, {}, FormatError, "no such file or folder"),
        ("a.csv", b"", {}, FormatError, "the file is empty"),
        ("a.bin", b"\x00\x01\x02", {}, FormatError, "its format is not known.*format="),
        ("a.edf", b"SR_RESEARCH_COMBINED_FILE", {}, FormatError, "edf2asc"),
        ("a.csv", CSV.encode(), {"format": "tobi-tsv"}, ParameterError, "Did you mean 'tobii-tsv'"),
        (
            "a.csv",
            CSV.encode(),
            {"colums": {}},
            ParameterError,
            "has no option 'colums'. Did you mean 'columns'",
        ),
        (
            "a.csv",
            CSV.encode(),
            {"clash": "maybe"},
            ParameterError,
            "'clash' parameter of read must be one of error, session",
        ),
        ("a.csv", CSV.encode(), {"format": "openneeds"}, FormatError, "not public"),
    ],
)
def test_reading_fails_in_one_sentence(
    tmp_path: Path,
    name: str,
    content: bytes | None,
    options: dict[str, object],
    error: type[Exception],
    message: str,
) -> None:
    if content is not None:
        put(tmp_path / name, content)
    with pytest.raises(error, match=message):
        list(gazeveil.read(tmp_path / name, **options))  # type: ignore[arg-type]


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no file in this folder looks like a known recording"):
        gazeveil.read(tmp_path)
    put(tmp_path / "a.csv", CSV)
    with pytest.raises(FormatError, match="no file here looks like eyelink-asc"):
        gazeveil.read(tmp_path, format="eyelink-asc")


LIMIT_BYTES = 1_000_000_000

# VmHWM is the peak of this program alone; ru_maxrss would start at the size of the process that
# launched it.
MEASURE = """
import re, sys
from pathlib import Path
from gazeveil.cli.main import main
try:
    main(["inspect", sys.argv[1], "--rows", "1"])
except SystemExit as stopped:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print("peak", int(peak) * 1024, "code", stopped.code)
"""


def folder_of(path: Path, files: int, samples: int) -> Path:
    rng = np.random.default_rng(0)
    x = 180 + np.cumsum(rng.normal(0, 0.01, samples)) % 90
    (path / "people").mkdir(parents=True)
    for i in range(files):
        write_recording(
            Recording(
                f"p{i}",
                "s",
                np.arange(samples) * 1_000_000,
                x,
                np.full(samples, 90.0),
                rate_hz=1000.0,
            ),
            path / "people" / f"{i:03d}.parquet",
        )
    return path / "people"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("files", "samples"),
    [
        (3, 1_500_000),
        pytest.param(100, 1_000_000, marks=pytest.mark.heavy),
        pytest.param(1, 100_000_000, marks=pytest.mark.heavy),
    ],
)
def test_a_hundred_million_samples_are_inspected_in_less_than_a_gigabyte(
    tmp_path: Path, files: int, samples: int
) -> None:
    command = [sys.executable, "-c", MEASURE, str(folder_of(tmp_path, files, samples))]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak, code = (int(w) for w in out.split("peak")[1].split("code"))
    assert code == 0
    assert f"{files * samples:,}" in out
    assert peak < LIMIT_BYTES, f"{peak / 1e6:.0f} MB"
