"""`gazeveil evaluate` and `gazeveil attack` as their user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gazeveil
from gazeveil.attacks import registry
from gazeveil.errors import DataError
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.study import FRAME, Study
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.parquet import write
from tests.support.command_line import run


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate") / "raw"
    assert (
        run(
            "simulate",
            folder,
            "--people",
            4,
            "--stimuli",
            4,
            "--seconds",
            8,
            "--rate",
            120,
            "--seed",
            3,
        )
        == 0
    )
    return folder


STUDY = """
name = "tiny"
repetitions = 2
mechanisms = ["gaussian:sigma_deg=2", "k-same-select:k=2"]
attacks = ["linkage"]
utilities = ["density"]
[cohort]
path = "{path}"
"""


def test_a_study_file_is_run_reported_and_resumed(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY.format(path=raw))
    out = tmp_path / "out"
    assert (
        run(
            "evaluate",
            tmp_path / "tiny.toml",
            "--out",
            out,
            "--workers",
            1,
            "--json",
            tmp_path / "e.json",
        )
        == 0
    )
    said = capsys.readouterr()
    title = "The only attacker tried (no battery, chosen one by one) on each release"
    assert title in " ".join(said.out.split())
    assert "linkage" in said.out
    assert "; chance " in said.out
    assert f"Results: {out}    Report: {out / 'report.html'}" in said.out
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    figures = json.loads((tmp_path / "e.json").read_text())
    assert {r["mechanism"] for r in figures["results"]} == {"none", "gaussian", "k-same-select"}
    assert figures["strongest"][0]["attack"] == "linkage"
    results = Results.read(out)
    assert results.frame.columns[: len(FRAME)] == list(FRAME)
    written = (out / "results.parquet").read_bytes()
    request.getfixturevalue("undrawn")  # a report was drawn above
    assert run("evaluate", tmp_path / "tiny.toml", "--out", out, "--workers", 1) == 0
    assert (out / "results.parquet").read_bytes() == written
    assert Results.read(out).study["times"]["computed"] == 0  # type: ignore[index]
    # Another count of repetitions may be tried without editing the file, and keeps what is there.
    assert (
        run("evaluate", tmp_path / "tiny.toml", "--out", out, "--workers", 1, "--repetitions", 3)
        == 0
    )
    assert set(Results.read(out).outcomes["repetition"]) == {0, 1, 2}
    assert Results.read(out).study["times"]["found"] > 0  # type: ignore[index]


PARTS = """
name = "two"
repetitions = 1
mechanisms = ["gaussian:sigma_deg=2"]
attacks = "quick"
[[part]]
label = "A"
simulate = { people = 3, stimuli = 3, seconds = 4, rate_hz = 60, seed = 1 }
[[part]]
label = "B"
simulate = { people = 3, stimuli = 3, seconds = 4, rate_hz = 60, seed = 2 }
"""


@pytest.mark.usefixtures("undrawn")
def test_a_study_of_parts_counts_what_the_network_calls_safe_over_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.toml").write_text(PARTS)
    short = ("--out", tmp_path / "o", "--workers", 1)
    figures = tmp_path / "f.json"
    assert run("evaluate", tmp_path / "two.toml", *short, "--json", figures) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Over all parts the RBF network alone would have called 0 of 2 releases safe" in said
    assert "where the strongest of 2 attackers (quick battery) recognises people" in said
    assert json.loads(figures.read_text())["called_safe"]["releases"] == 2


def members(name: str) -> set[str]:
    return set(registry.battery(name))


@pytest.mark.usefixtures("undrawn")
def test_utilities_do_not_drop_the_attackers_and_a_battery_is_joined_by_those_named(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o"
    short = ("-u", "density", "-r", 1, "--workers", 1, "--out", out)
    quick = ("evaluate", raw, "-m", "gaussian:sigma_deg=2", *short, "--attacks", "quick")
    assert run(*quick, "-a", "lda", "-a", "linkage") == 0
    results = Results.read(out)
    assert {a for a in results.frame["attack"] if a} == {"rbfn", "linkage", "lda"}
    assert {u for u in results.frame["utility"] if u} == {"density"}
    said = " ".join(capsys.readouterr().out.split())
    assert "strongest of 3 attackers (quick battery and 2 more)" in said
    assert "one repetition gives no verdict" in said


def test_the_strong_battery_attacks_unless_somebody_is_named(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only who is asked to attack is looked at: nothing is computed.
    asked: list[tuple[Study, str]] = []

    def stop(study: Study, *_: object) -> Results:
        asked.append((study, study.battery))
        raise DataError("Seen.")

    monkeypatch.setattr("gazeveil.evaluation.run.run", stop)
    monkeypatch.setattr("gazeveil.evaluation.run.run", stop)
    (tmp_path / "s.toml").write_text(f'utilities = ["density"]\n[cohort]\npath = "{raw}"\n')
    for arguments in ((raw,), (raw, "-u", "density"), (tmp_path / "s.toml",)):
        assert run("evaluate", *arguments, "--out", tmp_path / "o") == 2
    with pytest.raises(DataError, match="Seen"):
        gazeveil.evaluate(gazeveil.read(raw), utilities=["density"])
    assert len(asked) == 4
    for study, words in asked:
        assert {str(a) for a in study.attacks} == members("strong")
        assert words == "strong battery"
    asked.clear()
    assert run("attack", raw, raw) == 2
    without = {t for t in members("strong") if "knowledge" not in t}
    assert {str(a) for a in asked[0][0].attacks} == without
    asked.clear()
    text = 'attacks = "all"\n[cohort]\npath = "{}"\n'
    (tmp_path / "s.toml").write_text(text.format(raw))
    assert run("evaluate", tmp_path / "s.toml", "--out", tmp_path / "o") == 2
    assert {str(a) for a in asked[0][0].attacks} == members("all")
    asked.clear()
    for nobody in (("--no-attacks",), ("--attacks", "none"), ("--no-attacks", "--attacks", "none")):
        assert run("evaluate", raw, "-u", "density", *nobody, "--out", tmp_path / "o") == 2
    (tmp_path / "s.toml").write_text(
        f'attacks = []\nutilities = ["density"]\n[cohort]\npath = "{raw}"\n'
    )
    assert run("evaluate", tmp_path / "s.toml", "--out", tmp_path / "o") == 2
    assert [study.attacks for study, _ in asked] == [()] * 4


def test_a_protected_copy_is_attacked_from_outside_and_against_itself(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key-file", tmp_path / "key.json")
    assert run("protect", raw, tmp_path / "copy", "-m", "temporal:K=2", *key) == 0
    assert run("attack", raw, tmp_path / "copy") == 2
    assert "have pseudonyms, and without their key nobody can tell" in capsys.readouterr().err
    assert (
        run(
            "attack",
            raw,
            tmp_path / "copy",
            *key,
            "-a",
            "linkage",
            "-a",
            "knn",
            "-r",
            2,
            "--workers",
            1,
            "--json",
            tmp_path / "a.json",
        )
        == 0
    )
    out = capsys.readouterr().out
    for part in (
        "linkage",
        "knn",
        "is asked about the copy",
        "learns from one part of the copy",
        "one release split afterwards",
        "Measured:",
        "strongest of 2 attackers (no battery, chosen one by one)",
        "chance",
    ):
        assert part in " ".join(out.split())
    assert sum(line.startswith("linkage ") for line in out.splitlines()) == 3  # a line for each
    rows = [
        r
        for r in json.loads((tmp_path / "a.json").read_text())["results"]
        if r["metric"] == "identification_rate"
    ]
    assert {(r["scenario"], r["mechanism"]) for r in rows} == {
        ("raw/raw", "none"),
        ("raw/private", "copy"),
        ("release/release", "copy"),
    }
    assert all(r["n"] == 4 and r["chance"] == 0.25 and r["p_value"] is not None for r in rows)


def copied(raw: Path, folder: Path, **changes: object) -> Path:
    cohort = gazeveil.read(raw)
    write(
        Cohort(
            [
                r.with_(**{k: v(r) if callable(v) else v for k, v in changes.items()})
                for r in cohort
            ],
            None,
        ),
        folder,
    )
    return folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("evaluate", "nowhere.toml"), "there is no such file"),
        (("evaluate", "nowhere"), "there is no such file or folder"),
        (("evaluate", "RAW", "-m", "gausian:sigma_deg=2"), "Did you mean 'gaussian'"),
        (("evaluate", "RAW", "-a", "linkag"), "Did you mean 'linkage'"),
        (("evaluate", "RAW", "-u", "salency"), "Did you mean 'saliency'"),
        (("evaluate", "RAW", "-a", "linkage:featurs=extended"), "Did you mean 'features'"),
        (("evaluate", "RAW", "--scenario", "raw"), "must be one of"),
        (("evaluate", "RAW", "-m", "heatmap-laplace:epsilon=1"), "releases maps"),
        (
            ("evaluate", "RAW", "--workers", "2", "--cluster", "tcp://127.0.0.1:9"),
            "exclude one another",
        ),
        (("evaluate", "TOML", "-a", "linkage"), "says its attacks itself"),
        (("evaluate", "RAW", "--attacks", "stong"), "must be one of none, quick, strong, all"),
        (("evaluate", "RAW", "--no-attacks", "-a", "linkage"), "Leave one of them out"),
        (("evaluate", "RAW", "--attacks", "none", "-a", "lda"), "nobody attacks, and 'lda'"),
        (("evaluate", "RAW", "--no-attacks"), "needs something to measure"),
        (("evaluate", "TOML", "--attacks", "quick"), "says its attacks itself"),
        (("attack", "RAW", "RAW", "--attacks", "none"), "needs something to measure"),
        (("attack", "RAW", "RAW", "--kind", "attributes", "--attacks", "all"), "leave --kind out"),
        (("attack", "RAW", "nowhere"), "there is no such file or folder"),
        (("attack", "RAW", "RAW", "-a", "nonsense"), "must be one of"),
        (
            ("attack", "RAW", "RAW", "-a", "linkage:knowledge=white-box"),
            "makes releases of its own",
        ),
        (("attack", "RAW", "RENAMED"), "no people in common"),
        (("attack", "RAW", "OTHER"), "no stimulus in common"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    raw: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY.format(path=raw))
    places = {"RAW": raw, "TOML": tmp_path / "tiny.toml"}
    if "RENAMED" in arguments:
        places["RENAMED"] = copied(raw, tmp_path / "r", person=lambda r: f"x{r.person}")
    if "OTHER" in arguments:
        places["OTHER"] = copied(raw, tmp_path / "o", stimulus=lambda r: f"x{r.stimulus}")
    out = ("--out", tmp_path / "out") if arguments[0] == "evaluate" else ()
    assert run(*(places.get(a, a) for a in arguments), *out) == 2
    said = capsys.readouterr().err
    assert sentence in said.replace("\n", " ")
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "results.parquet").exists()
