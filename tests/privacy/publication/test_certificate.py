"""The certificate says what the guarantee says, lists every file, and its page reads as prose."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path
from typing import Any

import pytest

import gazeveil
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.privacy.publication.certificate import (
    FIGURES,
    Description,
    new_key,
    per_person,
    read_certificate,
    read_key,
    read_public_key,
    sign,
    signer,
    write_certificate,
)
from gazeveil.privacy.publication.page import page, summary


@pytest.fixture(scope="module")
def cohort() -> gazeveil.Cohort:
    return gazeveil.simulate(4, 2, 3.0, 60.0, seed=1)


def described(
    cohort: gazeveil.Cohort, mechanism: str, seed: int | None = None, **more: object
) -> Description:
    release = gazeveil.protect(cohort, mechanism, seed)
    return Description(
        release.guarantee,
        release.provenance,
        alignment={"time_zero": True, "rate_hz": "60", "pseudonyms": "fresh"},
        contents={"people": 4, "recordings": 8, "samples": 1440},
        **more,  # type: ignore[arg-type]
    )


def test_every_file_is_listed_with_its_hash(cohort: gazeveil.Cohort, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "recordings").mkdir(parents=True)
    (folder / "recordings" / ".hidden").write_bytes(b"\x00\xff")
    (folder / "people.csv").write_text("person\n", "utf-8")
    description = described(cohort, "gaussian:sigma_deg=5")
    write_certificate(folder, description)
    certificate = read_certificate(folder)
    files: Any = certificate["files"]
    assert sorted(files) == ["PRIVACY.md", "people.csv", "recordings/.hidden"]
    assert files["recordings/.hidden"] == {
        "sha256": hashlib.sha256(b"\x00\xff").hexdigest(),
        "bytes": 2,
    }
    assert certificate["guarantee"] == description.guarantee.to_dict()
    assert certificate["sentence"] == str(description.guarantee)
    promise: Any = certificate["guarantee"]
    assert promise["numbers"]["rho"] == str(description.guarantee.rho)
    assert not (folder / "PRIVACY.sig").exists()


@pytest.mark.parametrize("name", ["attack", "utility"])
def test_what_was_measured_on_the_recordings_is_not_covered(
    cohort: gazeveil.Cohort, name: str
) -> None:
    figures = {
        "attack": {"attacker": "knn", "found": 1, "people": 4, "guessing": 1},
        "utility": {"analyses": []},
    }
    silent = described(cohort, "gaussian:sigma_deg=5").to_dict()
    told = described(cohort, "gaussian:sigma_deg=5", **{name: figures[name]}).to_dict()
    assert FIGURES not in silent["not_covered"]  # type: ignore[operator]
    assert FIGURES in told["not_covered"]  # type: ignore[operator]
    assert FIGURES in str(told["sentence"])


def test_the_page_is_made_from_the_certificate_alone(
    cohort: gazeveil.Cohort, tmp_path: Path
) -> None:
    write_certificate(tmp_path, described(cohort, "kaleido:epsilon=1,w=30,r_deg=2"))
    written = (tmp_path / "PRIVACY.md").read_text("utf-8")
    assert page(read_certificate(tmp_path)) == written


def test_a_file_has_its_certificate_beside_it(cohort: gazeveil.Cohort, tmp_path: Path) -> None:
    file = tmp_path / "maps.csv"
    file.write_text("x\n", "utf-8")
    (tmp_path / "other.txt").write_text("not released", "utf-8")
    write_certificate(file, described(cohort, "gaussian:sigma_deg=5"))
    certificate = json.loads((tmp_path / "maps.csv.PRIVACY.json").read_text("utf-8"))
    assert sorted(certificate["files"]) == ["maps.csv", "maps.csv.PRIVACY.md"]


def test_links_are_refused(cohort: gazeveil.Cohort, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        write_certificate(tmp_path, described(cohort, "gaussian:sigma_deg=5"))


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            "kaleido:epsilon=1,w=30,r_deg=2",
            "**Moving any 0.5 seconds (30 samples) of a recording by at most 2 degrees changes the"
            " probability of any outcome by a factor of at most 2.72.**\n\nThat is proved, not"
            " measured. It does not hide who a participant is.",
        ),
        (
            "kaleido:epsilon=1,w=30,r_deg=2",
            # 6 windows of a recording, 2 recordings, half a turn in steps of 2 degrees.
            "Everything of one participant: epsilon = 1080, far too much to hide a participant",
        ),
        (
            "gaussian:sigma_deg=40,r_deg=1",
            "changes the probability of any outcome by a factor of at most 2.83, plus one in a"
            " million.",
        ),
        ("gaussian:sigma_deg=1,r_deg=1", "**This promise is too weak to protect anything: moving"),
        ("spatial:L=64", "**Nothing is promised: rounding is not random"),
        ("spatial:L=64", "There is no mathematical guarantee."),
        (
            "k-same-synth:k=2",
            "**What is released under a pseudonym was drawn by one rule for at least 2"
            " participants; the files alone single no one out.**",
        ),
        ("k-same-synth:k=2", "That already covers everything under one pseudonym."),
        ("event-synth-pd:k=2,gamma=4", "**At least 2 participants could have given what"),
    ],
)
def test_the_promise_in_plain_words(cohort: gazeveil.Cohort, mechanism: str, words: str) -> None:
    assert words in page(described(cohort, mechanism).to_dict())


def test_the_first_line_says_that_a_seeded_or_refuted_release_protects_nobody(
    cohort: gazeveil.Cohort,
) -> None:
    seeded = page(described(cohort, "gaussian:sigma_deg=5", seed=1).to_dict())
    assert seeded.splitlines()[0].startswith("**TEST RELEASE: THIS PROTECTS NOBODY.**")
    assert "Claimed, not promised: " in seeded
    refuted = described(cohort, "k-same-synth:k=2,reading=published").to_dict()
    first = page(refuted).splitlines()[0]
    assert first.startswith("**THE CLAIM IS REFUTED: THIS RELEASE PROMISES NOTHING.** Groups are")
    assert "Nothing can be offered to participants" in page(refuted)
    first = summary(described(cohort, "gaussian:sigma_deg=5").to_dict())[0]
    assert first.startswith("Made by"), "nothing is warned of"


def test_what_attackers_got_stands_on_the_page_and_in_the_consent_form(
    cohort: gazeveil.Cohort,
) -> None:
    attack = {"attacker": "rocket", "found": 9, "people": 24, "guessing": 1, "tried": 8}
    row = {
        "analysis": "heat map",
        "metric": "correlation",
        "value": 0.9,
        "reference": 0.2,
        "unit": "",
    }
    description = described(
        cohort, "gaussian:sigma_deg=5", attack=attack, utility={"analyses": [row]}
    )
    text = page(description.to_dict())
    assert "the strongest of 8 attackers recognised 9 of 24 participants (chance 1 of 24)" in text
    assert "still recognised 9 of 24 participants" in text
    assert "- heat map: correlation 0.9 (without the data 0.2)" in text
    without = page(described(cohort, "gaussian:sigma_deg=5").to_dict())
    assert "No attack was run" in without


def test_what_is_kept_is_not_promised(cohort: gazeveil.Cohort) -> None:
    text = page(described(cohort, "gaussian:sigma_deg=5", kept=("person", "times")).to_dict())
    assert "- person: released as recorded, on request" in text
    assert "new random names" not in text
    assert "Times begin at zero" not in text


def test_the_table_of_people_is_said_in_words(cohort: gazeveil.Cohort) -> None:
    people = {name: {"age": 20 + i, "gender": "f"} for i, name in enumerate("abcd")}
    table = gazeveil.protect(people, "demographics:k=4").guarantee
    text = page(described(cohort, "gaussian:sigma_deg=5", people_table=table).to_dict())
    assert "Every row of this table is the same for at least 4 participants." in text
    assert "Nothing is said about age" in page(described(cohort, "gaussian:sigma_deg=5").to_dict())


def test_one_page_is_at_most_700_words(cohort: gazeveil.Cohort) -> None:
    for mechanism in ("gaussian:sigma_deg=5", "event-synth-pd:k=2,gamma=4"):
        assert len(page(described(cohort, mechanism).to_dict()).split()) < 700


def test_a_person_adds_up_or_it_is_said_why_not(cohort: gazeveil.Cohort) -> None:
    kaleido = "kaleido:epsilon=1,w=30,r_deg=2"
    live: Any = gazeveil.mechanism(kaleido)
    reason = per_person(live.open(60.0).guarantee)["reason"]
    assert "depends on its length, which is not known" in str(reason)
    told: Any = per_person(described(cohort, kaleido).guarantee)
    assert told["numbers"]["epsilon"] == "1080"


def test_a_key_signs_and_nobody_else_can(tmp_path: Path) -> None:
    key = new_key(tmp_path / "lab.key")
    assert stat.S_IMODE((tmp_path / "lab.key").stat().st_mode) == 0o600
    assert read_key(tmp_path / "lab.key") == key
    assert key.secret.hex() not in repr(key)
    signature = sign(key, b"bytes")
    assert signer(signature, b"bytes") == key.public == read_public_key(tmp_path / "lab.key.pub")
    assert signer(signature, b"Bytes") is None
    other = new_key(tmp_path / "other.key")
    assert signer(signature | {"public_key": other.public}, b"bytes") is None
    assert signer({}, b"bytes") is None
    assert signer(signature | {"algorithm": "none"}, b"bytes") is None
    assert signer(signature | {"signature": "00"}, b"bytes") is None
    with pytest.raises(DataError, match="exists already"):
        new_key(tmp_path / "lab.key")


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("hello", "utf-8")
    with pytest.raises(FormatError, match="not a signing key"):
        read_key(tmp_path / "none")
    with pytest.raises(ParameterError, match="must be a public key"):
        read_public_key(tmp_path / "none")
    assert read_public_key("AB" * 32) == "ab" * 32


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "there is no certificate"),
        ("{", "cut or damaged"),
        ("[]", "not a certificate"),
        ('{"format": "gazeveil-certificate", "version": 99}', "version 99 is not known"),
    ],
)
def test_what_is_no_certificate_is_refused(text: str | None, problem: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "PRIVACY.json").write_text(text, "utf-8")
    with pytest.raises(FormatError, match=problem):
        read_certificate(tmp_path)
