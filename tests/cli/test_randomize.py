"""Devices and a curator as separate processes that share bytes and a
public parameter file alone."""

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.privacy.synthesis.dpgazesynth.messages import envelopes
from tests.support.command_line import run

PUBLIC = {
    "corrected": 'mechanism = "dpgazesynth"\nepsilon = 4\nG = 8\n',
    "one-report": 'mechanism = "dpgazesynth-one-report"\nepsilon = "4"\nG = 8\n',
}

#: The option that names the public parameters.
BY = "--parameters"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of three people, one folder each, as their devices hold them, and public
    parameters.
    """
    folder = tmp_path_factory.mktemp("randomize")
    cohort = gazeveil.simulate(3, 2, 6.0, 60.0, seed=3)
    for person in cohort.people:
        cohort.select(people=[person]).write(folder / person)
    for name, text in PUBLIC.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def test_separate_processes_report_and_curate(place: Path, tmp_path: Path) -> None:
    public = place / "corrected.toml"
    command = [
        sys.executable,
        "-m",
        "gazeveil.cli.main",
        "randomize",
        place / "p1",
        BY,
        public,
        "--out",
        tmp_path / "p1.gvr",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "changes the probability of any outcome by a factor of at most 54.6" in done.stdout
    for person in ("p2", "p3"):
        assert (
            run("randomize", place / person, BY, public, "--out", tmp_path / f"{person}.gvr") == 0
        )
    files = sorted(tmp_path.glob("*.gvr"))
    assert len({f.stat().st_size for f in files}) == 1
    assert b"p1" in files[0].read_bytes()
    command = [
        sys.executable,
        "-m",
        "gazeveil.cli.main",
        "curate",
        *reversed(files),
        BY,
        public,
        "-o",
        tmp_path / "out",
        "--json",
        tmp_path / "c.json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "c.json").read_text())
    assert (figures["messages"], figures["windows"], figures["people"], figures["refused"]) == (
        6,
        72,
        3,
        {},
    )
    assert figures["guarantee"]["status"] == "proved"
    counts = np.load(tmp_path / "out" / "counts.npz")
    assert counts["steps/reports"].tolist() == [72 * 5]
    assert counts["steps/supports"].shape == (8 * 8**2 - 6 * 8 + 1,)
    model = np.load(tmp_path / "out" / "model.npz")
    assert np.allclose(model["transitions"].sum(axis=1), 1.0)
    out = gazeveil.read(tmp_path / "out" / "recordings")
    reported = [r for person in ("p1", "p2", "p3") for r in gazeveil.read(place / person)]
    # Names of stimuli come from devices, which may have them from paths: numbers are published.
    assert len(out) == len(reported)
    assert {r.stimulus for r in out} == {f"stimulus-{i + 1:03d}" for i in range(len(out.stimuli))}
    assert len(out.people) == 3
    assert not set(out.people) & {"p1", "p2", "p3"}
    assert (tmp_path / "out" / "recordings" / "PRIVACY.md").exists()
    assert all(len(r) == 360 and r.valid.all() for r in out)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_order_of_files_does_not_matter_and_every_bad_one_is_counted(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = place / f"{name}.toml"
    for person in ("p1", "p2"):
        assert (
            run(
                "randomize",
                place / person,
                BY,
                public,
                "-o",
                tmp_path / "in" / person,
                "--seed",
                1,
                "--json",
                tmp_path / "r.json",
            )
            == 0
        )
    figures = json.loads((tmp_path / "r.json").read_text())
    assert figures["guarantee"]["status"] == "claimed"
    assert (figures["messages"], figures["windows"]) == (2, 24)
    (tmp_path / "in" / "empty").write_bytes(b"")
    (tmp_path / "in" / "junk").write_bytes(b"not a message" * 10)
    (tmp_path / "in" / "twice").write_bytes((tmp_path / "in" / "p1").read_bytes())
    (tmp_path / "in" / "cut").write_bytes((tmp_path / "in" / "p2").read_bytes()[:-9])
    capsys.readouterr()
    assert (
        run(
            "curate",
            tmp_path / "in",
            BY,
            public,
            "-o",
            tmp_path / "a",
            "--seed",
            2,
            "--json",
            tmp_path / "a.json",
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "Refused 1 message: it is no message." in said
    assert "Refused 1 message: it is cut short." in said
    assert "already" in said
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["messages"] == 4
    assert sum(found["refused"].values()) == 1 + 1 + 2 + 1
    assert (
        run(
            "curate",
            tmp_path / "in" / "p2",
            tmp_path / "in" / "p1",
            BY,
            public,
            "-o",
            tmp_path / "b",
            "--seed",
            2,
        )
        == 0
    )
    one, other = (np.load(tmp_path / n / "counts.npz") for n in "ab")
    assert all((one[k] == other[k]).all() for k in one.files)
    first, second = (gazeveil.read(tmp_path / n / "recordings") for n in "ab")
    assert all((r.x_deg == s.x_deg).all() for r, s in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this is no toml", "no parameter file"),
        ("epsilon = 1", "does not name a mechanism"),
        ('mechanism = "gaussian"\nsigma_deg = 1', "devices do not report for 'gaussian'"),
        ('mechanism = "dpgazesynth"', "needs the parameter 'epsilon'"),
        ('mechanism = "dpgazesynth"\nepsilon = 1\ncells = 3', "has no parameter 'cells'"),
        ('mechanism = "dpgazesynth"\nepsilon = -1', "epsilon"),
    ],
)
def test_a_bad_parameter_file_is_one_sentence_and_exit_code_2(
    text: str, words: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.toml").write_text(text)
    assert run("randomize", place / "p1", BY, tmp_path / "p.toml", "-o", tmp_path / "m") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_bad_input_is_one_sentence_and_exit_code_2(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = place / "one-report.toml"
    assert run("randomize", place / "p1", BY, public, "-o", tmp_path / "m") == 0
    cases = [
        (("randomize", place / "p1", BY, public, "-o", tmp_path / "m"), "exists already"),
        (
            ("randomize", place / "p1", place / "p1", BY, public, "-o", tmp_path / "n"),
            "given twice",
        ),
        (
            (
                "randomize",
                place / "p1",
                place / "p2",
                BY,
                public,
                "-o",
                tmp_path / "n",
                "--as",
                "x",
            ),
            "one person",
        ),
        (("randomize", place / "nowhere", BY, public, "-o", tmp_path / "n"), "nowhere"),
        (("curate", tmp_path / "nowhere", BY, public, "-o", tmp_path / "o"), "does not exist"),
        (
            ("curate", tmp_path / "m", BY, place / "corrected.toml", "-o", tmp_path / "o"),
            "No message could be taken",
        ),
        (("curate", tmp_path / "m", BY, public, "-o", place), "not an empty folder"),
        (("curate", tmp_path / "m", BY, tmp_path / "none.toml", "-o", tmp_path / "o"), "none.toml"),
    ]
    for arguments, words in cases:
        capsys.readouterr()
        assert run(*arguments) == 2, arguments
        said = capsys.readouterr().err
        assert words in said, (arguments, said)
        assert "Traceback" not in said
        assert not (tmp_path / "n").exists()
        assert not (tmp_path / "o").exists()


def forged(file: Path, body: bytes | None = None, **said: object) -> bytes:
    """A message with a sound frame and another head or body, as somebody who knows the format may
    send it.
    """
    first = next(iter(envelopes(file.read_bytes())))
    head = json.dumps({**json.loads(bytes(first.head)), **said}).encode()
    held = bytes(first.body) if body is None else body
    framed = (
        struct.pack("<8sHH16sIQ", b"gazeveil", 1, 0, first.parameters, len(head), len(held))
        + head
        + held
    )
    return framed + struct.pack("<I", zlib.crc32(framed))


SCREEN = {
    "kind": "screen",
    "width_px": 1,
    "height_px": 1,
    "width_mm": 1,
    "height_mm": 1,
    "distance_mm": 1,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_hostile_sender_who_knows_the_format_is_refused_and_stops_nobody(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = place / f"{name}.toml"
    assert run("randomize", place / "p1", place / "p2", BY, public, "-o", tmp_path / "good") == 0
    good = tmp_path / "good"
    first = next(iter(envelopes(good.read_bytes())))
    body = bytes(first.body)
    hostile = {
        "it claims more samples than it has": (
            forged(good, person="a", samples=10**12),
            "its body is too short",
        ),
        "it claims none": (forged(good, person="b", samples=0), "its body is too long"),
        "it counts in truth values": (
            forged(good, person="c", samples=True),
            "its length or its beginning is not possible",
        ),
        "its name cannot be written": (forged(good, person="\ud800"), "its head cannot be read"),
        "its screen is of another kind": (
            forged(good, bytes(255 - v for v in body[:8]) + body[8:], person="d", space=SCREEN),
            "another kind of space",
        ),
        "its answers are no answers": (forged(good, body[:-40] + b"\xff" * 40, person="e"), ""),
        "it is somebody else's under a new name": (
            forged(good, person="f"),
            "it is a copy of another message",
        ),
    }
    (tmp_path / "bad").write_bytes(b"".join(message for message, _ in hostile.values()))
    # A recording without a sample is no lie: it adds nothing.
    (tmp_path / "nothing").write_bytes(forged(good, b"", person="nobody", samples=0))
    capsys.readouterr()
    files = (tmp_path / "bad", tmp_path / "nothing", good)
    assert (
        run("curate", *files, BY, public, "-o", tmp_path / "out", "--json", tmp_path / "c.json")
        == 0
    )
    figures = json.loads((tmp_path / "c.json").read_text())
    assert (figures["messages"], figures["windows"], sum(figures["refused"].values())) == (
        5,
        48,
        len(hostile),
    )
    for why, (_, words) in hostile.items():
        assert any(words in said for said in figures["refused"]), (why, figures["refused"])
    assert run("curate", tmp_path / "nothing", BY, public, "-o", tmp_path / "none") == 2
    assert "No window was reported" in capsys.readouterr().err


def test_the_parameter_file_says_which_kind_of_space_counts(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = {"screen": "reading", "sphere": "video"}
    public = tmp_path / "any.toml"
    public.write_text(PUBLIC["one-report"])
    for people, (kind, task) in enumerate(kinds.items(), start=1):  # twice as many about spheres
        gazeveil.simulate(people, 1, 6.0, 60.0, task=task, seed=people).write(tmp_path / kind)
        assert run("randomize", tmp_path / kind, BY, public, "-o", tmp_path / f"{kind}.gvr") == 0
    for kind in kinds:
        said = tmp_path / f"{kind}.toml"
        said.write_text(f'{PUBLIC["one-report"]}space = "{kind}"\n')
        other = next(k for k in kinds if k != kind)
        capsys.readouterr()
        assert (
            run(
                "curate",
                tmp_path / "screen.gvr",
                tmp_path / "sphere.gvr",
                BY,
                said,
                "-o",
                tmp_path / f"out-{kind}",
            )
            == 0
        )
        assert (
            "about another kind of space than the public parameters say" in capsys.readouterr().out
        )
        assert (
            len(gazeveil.read(tmp_path / f"out-{kind}" / "recordings"))
            == {"screen": 1, "sphere": 2}[kind]
        )
        assert (
            run("randomize", tmp_path / other, BY, said, "-o", tmp_path / f"never-{kind}.gvr") == 2
        )
        assert f"is not about a {kind}" in " ".join(capsys.readouterr().err.split())
        assert not (tmp_path / f"never-{kind}.gvr").exists()
    (tmp_path / "bad.toml").write_text(PUBLIC["one-report"] + 'space = "cube"\n')
    assert (
        run("curate", tmp_path / "screen.gvr", BY, tmp_path / "bad.toml", "-o", tmp_path / "never")
        == 2
    )
