"""`gazeveil publish`: one verb from a folder of recordings to a certified release."""

from __future__ import annotations

import errno
import json
import shutil
import stat
from collections import Counter
from pathlib import Path

import pytest

import gazeveil
from gazeveil.privacy.publication.ledger import ReleaseLedger
from gazeveil.privacy.publication.names import read_key
from gazeveil.privacy.publication.outputs import Part, PartSummary
from gazeveil.release.run import WorkFolder
from tests.support.command_line import heard
from tests.support.recordings import real

STREAM = "gaussian:sigma_deg=2"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of its own for every test."""
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = list(gazeveil.simulate(6, 3, 4.0, 100.0, seed=1))
    made[0] = made[0].with_(valid=made[0].valid & False)
    people = {
        p: {"age": 20 + i, "gender": "f", "shoe": 40 + i}
        for i, p in enumerate(sorted({r.person for r in made}))
    }
    cohort = gazeveil.Cohort([r.with_(session="2017-10-13", truth=None) for r in made], people)
    return cohort.write(tmp_path_factory.mktemp("publish") / "raw")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code, out, err = heard(capsys, *words)
    return code, " ".join(out.split()), " ".join(err.split())


def test_a_plan_removes_nothing_of_an_interrupted_run(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = WorkFolder(tmp_path / "out")
    left.make()
    words = (raw, left.out, "-m", STREAM, "--plan", "--instead-of", left.out)
    assert run(capsys, "publish", *words)[0] == 0
    assert left.exists


def test_the_whole_road_in_one_verb(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, key = tmp_path / "out", tmp_path / "key.json"
    (tmp_path / "few.toml").write_text("[attack]\nrepetitions = 1\n")
    words = ("-m", STREAM, "--from", tmp_path / "few.toml", "--key-file", key)
    words = (*words, "--json", tmp_path / "f.json")
    code, said, err = run(capsys, "publish", raw, out, *words)
    assert (code, err) == (0, "")
    for step in ("inventory", "plan", "scrub", "align", "protect", "attack", "certify"):
        assert f"{step} " in said
    assert "17 recordings of 6 people, 3 stimuli" in said
    assert "1 recording without gaze" in said
    assert "None of these people is in an earlier release" in said
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["attack"]["people"] == 6
    assert figures["attack"]["battery"] == "strong"
    assert 0 <= figures["attack"]["low"] <= figures["attack"]["rate"] <= figures["attack"]["high"]
    assert {row["analysis"] for row in figures["utility"]["analyses"]} >= {
        "where one person looks at one moment"
    }
    certificate = json.loads((out / "PRIVACY.json").read_text())
    assert certificate["attack"] == figures["attack"]
    page = (out / "PRIVACY.md").read_text()
    assert f"{figures['attack']['found']} of 6 participants" in page
    copy = gazeveil.read(out)
    assert {r.rate_hz for r in copy} == {100.0}
    assert len({len(r) for r in copy}) == 1
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert set(read_key(key).people) == {"p1", "p2", "p3", "p4", "p5", "p6"}
    inside = (out / "publish.toml").read_text()
    assert str(raw) not in inside
    assert "2017" not in inside
    assert run(capsys, "verify", out, "--against", raw)[0] == 0


def test_the_plan_says_everything_and_writes_nothing(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("-m", STREAM, "--plan", "--json", tmp_path / "plan.json")
    code, said, _ = run(capsys, "publish", raw, tmp_path / "out", *words)
    assert code == 0
    for part in (
        "recordings of 6 people",
        "promise:",
        "per person:",
        "messages, labels, metadata, file names, devices dropped",
        "age, gender in groups of at least 4",
        "Not published about people: shoe.",
        "left out: 1 recording without gaze",
        "lengths: one for each stimulus",
        "to protect with one process; then the strong battery attacks",
    ):
        assert part in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan.json"]
    headings = [line[0] for line in json.loads((tmp_path / "plan.json").read_text())["plan"]]
    assert headings[0] == "release"
    code, said, _ = run(capsys, "publish", raw, "-m", "k-same-synth:k=6,match=crowd", "--plan")
    assert "to protect with one process; then the strong battery attacks: " in said
    assert "1 stimulus that fewer than k = 6 people saw" in said


def test_a_headset_is_published_by_groups_and_the_curator_hears_who_shares_a_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The minute in a file name of VR-EyeTracking is no session, so four people share a cell."""
    source, copy = real("vr_eyetracking"), tmp_path / "vr_eyetracking"
    places = [f for video in ("073", "074") for f in sorted(source.rglob(f"{video}._*"))]
    people = Counter(file.parent.name for file in places)
    both = sorted(person for person, count in people.items() if count == 2)[:4]
    for file in [f for f in places if f.parent.name in both]:
        place = copy / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    shutil.copy(source / "frame_interval_s.json", copy)
    words = ("--preset", "public-events", "--attacks", "quick")
    (tmp_path / "few.toml").write_text("[attack]\nrepetitions = 1\n")
    words = (*words, "--from", tmp_path / "few.toml")
    code, said, err = run(capsys, "publish", copy, tmp_path / "out", *words)
    assert code == 0, err
    assert "For you alone, not covered by the promise, never to be published:" in said
    assert "fewest sharing: 4, most sharing: 4" in said
    assert "sharing" not in "".join(f.read_text() for f in (tmp_path / "out").glob("PRIVACY.*"))
    assert len(gazeveil.read(tmp_path / "out")) == 8


def test_the_file_of_choices_makes_the_same_choices_again(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.toml").write_text("[publication]\nk = 3\nrate_hz = '50'\n")
    words = ("-m", STREAM, "--attacks", "none", "--keep", "shoe", "--to", "csv")
    words = (*words, "--from", tmp_path / "own.toml")
    assert run(capsys, "publish", raw, tmp_path / "one", *words)[0] == 0
    recipe = tmp_path / "one.publish.toml"
    assert run(capsys, "publish", "--from", recipe, tmp_path / "two")[0] == 0
    one, two = tmp_path / "one", tmp_path / "two"
    assert len(list(one.rglob("*"))) == len(list(two.rglob("*")))
    assert (tmp_path / "two.publish.toml").read_text() == recipe.read_text()
    for folder in (one, two):
        certificate = json.loads((folder / "PRIVACY.json").read_text())
        assert "shoe" in certificate["kept"]
        assert {r.rate_hz for r in gazeveil.read(folder)} == {50.0}
    # What the command line says goes before the file.
    other = ("--from", recipe, tmp_path / "three", "--to", "parquet")
    assert run(capsys, "publish", *other)[0] == 0
    assert (tmp_path / "three" / "cohort.json").exists()


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("--preset", "public-maps"), None),
        (("--preset", "public-samples"), "cohort.json"),
        (("-m", "heatmap-laplace:epsilon=2"), "maps.parquet"),
        (("-m", "lpa:epsilon=1"), "features.parquet"),
        (("-m", "heatmap-laplace:epsilon=2", "--to", "csv"), "maps.csv"),
    ],
)
def test_presets_maps_and_tables_are_published(
    words: tuple[str, ...],
    file: str | None,
    raw: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said, err = run(capsys, "publish", raw, tmp_path / "out", *words, "--attacks", "none")
    assert (code, err) == (0, "")
    assert file is None or (tmp_path / "out" / file).exists()
    assert (tmp_path / "out" / "PRIVACY.md").exists()
    assert "nobody attacked, as you asked" in said


def test_a_second_release_of_the_same_people_adds_up_or_is_refused(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ("-m", STREAM, "--attacks", "none")
    assert run(capsys, "publish", raw, tmp_path / "one", *first)[0] == 0
    code, said, _ = run(capsys, "publish", raw, tmp_path / "two", *first)
    assert code == 0
    assert "6 of these people are in 1 earlier release: together" in said
    code, _, err = run(
        capsys, "publish", raw, tmp_path / "three", "-m", "k-same-synth:k=2", "--attacks", "none"
    )
    assert code == 2
    assert "does not add up" in err
    assert not (tmp_path / "three").exists()
    (tmp_path / "run.toml").write_text("[run]\nbudget = '1'\n")
    budget = ("--from", tmp_path / "run.toml")
    assert run(capsys, "publish", raw, tmp_path / "four", *first, *budget)[0] == 2
    assert not (tmp_path / "four").exists()
    book = tmp_path / "maps.json"
    maps = ("-m", "heatmap-laplace:epsilon=1", "--attacks", "none", "--ledger", book)
    assert "verify --new-ledger" in run(capsys, "publish", raw, tmp_path / "m1", *maps)[2]
    assert run(capsys, "verify", "--new-ledger", book)[0] == 0
    assert "None of these" in run(capsys, "publish", raw, tmp_path / "m1", *maps)[1]
    assert "at most epsilon = 2" in run(capsys, "publish", raw, tmp_path / "m2", *maps)[1]
    apart = ("--ledger", "none", "-m", "k-same-synth:k=2", "--attacks", "none")
    assert run(capsys, "publish", raw, tmp_path / "five", *apart)[0] == 0


def test_a_run_that_is_given_up_is_taken_off_the_ledger(
    raw: Path,
    tmp_path: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("publish", raw, tmp_path / "out", "-m", STREAM, "--attacks", "none")
    write, done = Part.write, []

    def full(part: Part, folder: Path) -> PartSummary:
        if len(done) == 2:
            raise OSError(errno.ENOSPC, "no space left on device")
        done.append(part.number)
        return write(part, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Part, "write", full)
        code, _, err = run(capsys, *words)
    assert code == 2
    assert "no room" in err
    assert not (tmp_path / "out").exists()
    code, said, err = run(capsys, *words, "--instead-of", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "None of these people is in an earlier release" in said
    states = [r["state"] for r in ReleaseLedger(home / "releases.json").releases]
    assert sorted(states) == ["cancelled", "finished"]


def counted(home: Path) -> list[str]:
    """States of what counts in the ledger."""
    stored = ReleaseLedger(home / "releases.json").releases
    return [r["state"] for r in stored if r["state"] != "cancelled"]


def test_a_release_that_was_killed_before_it_was_noted_is_no_free_second_one(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: ReleaseLedger, release: str, certificate: str) -> None:
        raise KeyboardInterrupt

    raw = gazeveil.simulate(4, 1, 2.0, 60.0, seed=2).write(tmp_path / "raw")
    kept = ("--keep", "person", "--keep", "session", "--keep", "stimulus")
    asked = ("-m", "heatmap-gaussian:rho=1", "--attacks", "none", *kept)
    with monkeypatch.context() as patched:
        patched.setattr(ReleaseLedger, "finish", killed)
        run(capsys, "publish", raw, tmp_path / "first", *asked)
    assert (tmp_path / "first" / "PRIVACY.json").exists()
    assert counted(home) == ["charged"]
    # somewhere else, then where the first one was
    code, said, err = run(capsys, "publish", raw, tmp_path / "second", *asked)
    assert (code, err) == (0, "")
    assert "are in 1 earlier release" in said
    (tmp_path / "first").rename(tmp_path / "moved")
    code, said, err = run(capsys, "publish", raw, tmp_path / "first", *asked)
    assert (code, err) == (0, "")
    assert "are in 2 earlier releases" in said
    assert counted(home) == ["finished"] * 3


def test_what_breaks_once_a_release_stands_does_not_take_its_charge_back(
    raw: Path,
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(self: WorkFolder) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(WorkFolder, "remove", stopped)  # the first step after it has its name
        code, _, _ = run(capsys, "publish", raw, out, "-m", STREAM, "--attacks", "none")
    assert code != 0
    assert (out / "PRIVACY.json").exists()
    assert counted(home) == ["charged"]
    code, _, err = run(capsys, "publish", raw, out, "-m", STREAM, "--attacks", "none", "--resume")
    assert (code, err) == (0, "")
    assert counted(home) == ["finished"]


def test_regions_name_neither_a_folder_nor_a_stimulus_that_is_withheld(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, folder = tmp_path / "out", tmp_path / "of_somebody"
    folder.mkdir()
    boxes = "stimulus,name,left_deg,top_deg,right_deg,bottom_deg\n*,whole,100,60,160,100\n"
    for stimulus in ("free-viewing-1", "free-viewing-2"):
        boxes += f"{stimulus},her_face,100,60,120,80\n{stimulus},book,140,60,142,62\n"
    (folder / "boxes.csv").write_text(boxes)
    chosen = f"kaleido:epsilon=1,w=50,r_deg=median,regions={folder / 'boxes.csv'}"
    (folder / "own.toml").write_text('[publication]\nstimuli = ["free-viewing-2"]\n')
    words = ("-m", chosen, "--from", folder / "own.toml", "--attacks", "none")
    code, _, err = run(capsys, "publish", raw, out, *words)
    assert (code, err) == (0, "")
    for file in out.rglob("*"):
        held = file.read_bytes() if file.is_file() else b""
        for secret in (b"of_somebody", b"free-viewing-1", b"her_face"):
            assert secret not in held, file
    code, said, _ = run(capsys, "verify", out)  # by somebody without the file
    assert (code, "That r was not compared" in said) == (0, True)
    code, said, _ = run(capsys, "verify", out, "--regions", folder / "boxes.csv")
    assert (code, "worked out again from mechanism and recordings" in said) == (0, True)
    assert str(folder) in (tmp_path / "out.publish.toml").read_text()  # for its holder


def test_a_signed_release_is_verified_with_its_key(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "verify", "--new-key", tmp_path / "lab.key")[0] == 0
    (tmp_path / "run.toml").write_text('[run]\nsign = "lab.key"\n')
    sign = ("--from", tmp_path / "run.toml", "--attacks", "none")
    assert run(capsys, "publish", raw, tmp_path / "out", "-m", STREAM, *sign)[0] == 0
    key = ("--key", tmp_path / "lab.key.pub")
    assert run(capsys, "verify", tmp_path / "out", *key)[0] == 0
    page = tmp_path / "out" / "PRIVACY.md"
    page.write_text(page.read_text().replace("6 people", "7 people"))
    assert run(capsys, "verify", tmp_path / "out", *key)[0] == 1


BAD = [
    (["{raw}", "{out}"], "Name the recordings, and a --mechanism or a --preset"),
    (["{raw}", "{out}", "-m", STREAM, "--preset", "public-maps"], "Leave one of them out"),
    (["{raw}", "{out}", "--preset", "public-map"], "Did you mean 'public-maps'"),
    (["{raw}", "-m", STREAM], "Name the folder to write"),
    (["-m", STREAM], "not said which recordings"),
    (["{raw}", "{raw}", "-m", STREAM], "not an empty folder"),
    (["{raw}/nothing", "{out}", "-m", STREAM], "no such file"),
    (["{raw}", "{out}", "-m", "gausian:sigma_deg=1"], "Did you mean 'gaussian'"),
    (["{raw}", "{out}", "-m", "demographics:k=4"], "part of every publication"),
    (["{raw}", "{out}", "-m", "k-same-synth:k=9"], "among k = 9, and 6 people took part"),
    (["{raw}", "{out}", "-m", STREAM, "--keep", "soul"], "keep"),
    (["{raw}", "{out}", "-m", STREAM, "--to", "xml"], "one of bids, csv, parquet, same"),
    (["{raw}", "{out}", "-m", "lpa:epsilon=1", "--to", "bids"], "parquet, csv for feature tables"),
    (["{raw}", "{out}", "-m", STREAM, "--attacks", "soft"], "attacks"),
    (["{raw}", "{out}", "-m", STREAM, "--key-file", "{out}/key.json"], "inside the release"),
    (["--from", "{raw}/cohort.json", "{out}"], "not TOML"),
    (["--from", "{raw}/none.toml", "{out}"], "no such file"),
    (["{raw}", "{out}", "-m", STREAM, "--ledger", "{raw}/cohort.json"], "ledger"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[b[1] for b in BAD])
def test_bad_input_is_one_sentence_and_nothing_is_written(
    words: list[str], sentence: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [w.format(raw=raw, out=tmp_path / "out") for w in words]
    attacks = () if "--attacks" in given else ("--attacks", "none")
    code, _, err = run(capsys, "publish", *given, *attacks)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()
    assert {p.name for p in tmp_path.iterdir()} <= {"home"}
