"""Releases by many processes, killed, resumed, without room and with files that cannot be read:
complete and the same bytes, or one sentence and nothing.

The whole way of pieces: plan, one clock, pieces, ledger, attack, certificate; and only once.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gazeveil
from gazeveil.cli.main import app
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.io.reading import ReadingWarning
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.alignment import look_at
from gazeveil.privacy.publication.certificate import read_certificate
from gazeveil.privacy.publication.ledger import Charging, ReleaseLedger
from gazeveil.privacy.publication.names import PublicationChoices, PublicNames, read_key
from gazeveil.privacy.publication.protecting import protected
from gazeveil.privacy.randomness.supply import MasterKey, drawn_anew
from gazeveil.privacy.registry import mechanism
from gazeveil.release.plan import plan_of
from gazeveil.release.publishing import Watcher, compare, publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.run import (
    JournalHead,
    WorkFolder,
    begin_journal,
    begun_names,
    check_out,
    clean,
    read_journal,
)
from gazeveil.release.verify import verify
from tests.release.running import written
from tests.support import command_line

GAUSSIAN = "gaussian:sigma_deg=3"
KSAME = "k-same-synth:k=3"

RECORDINGS = 12


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw") / "in"
    gazeveil.simulate(6, 2, 8.0, 250.0, seed=3).write(folder)
    return folder


@pytest.fixture(scope="module")
def whole(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What a run writes that nobody disturbs, by mechanism."""
    folder = tmp_path_factory.mktemp("whole")
    found = {}
    for number, name in enumerate((GAUSSIAN, KSAME)):
        written(raw, folder / str(number), name)
        found[name] = files(folder / str(number))
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def nothing_but(folder: Path, *names: str) -> bool:
    return sorted(p.name for p in folder.iterdir()) == sorted(names)


def certified(folder: Path) -> bool:
    """Whether the certificate lists every file with its hash."""
    import hashlib

    listed = json.loads((folder / "PRIVACY.json").read_text())["files"]
    present = {
        n: hashlib.sha256(b).hexdigest() for n, b in files(folder).items() if n != "PRIVACY.json"
    }
    return {n: f["sha256"] for n, f in listed.items()} == present


def begun(
    raw: Path, out: Path, name: str, *more: str, pause: int | None = None
) -> subprocess.Popen[str]:
    """A run in a process group of its own, which stops itself after so many parts."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.release.running", str(raw), str(out), name, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GAZEVEIL_TEST_PAUSE": str(pause)},
    )


def paused(process: subprocess.Popen[str]) -> None:
    """Wait until a run has stopped itself."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def lines(out: Path) -> int:
    """Finished parts, by the journal."""
    journal = WorkFolder(out).journal_file
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else -1


def stop_after(process: subprocess.Popen[str], out: Path, parts: int, kind: signal.Signals) -> bool:
    """End a run once so many parts are finished; False if it was over before."""
    while process.poll() is None and lines(out) < parts:
        time.sleep(0.0005)
    if process.poll() is not None:
        return False
    os.killpg(process.pid, kind)
    return True


# --- the same bytes
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "workers"), [(GAUSSIAN, 2), pytest.param(KSAME, 2, marks=pytest.mark.heavy)]
)
def test_any_number_of_workers_writes_the_same_bytes(
    raw: Path, whole: dict[str, Any], tmp_path: Path, name: str, workers: int
) -> None:
    result = written(raw, tmp_path / "out", name, workers)
    assert [s.number for s in result.summaries] == list(range(1, RECORDINGS + 1))
    assert files(tmp_path / "out") == whole[name]
    assert nothing_but(tmp_path, "out")
    assert certified(tmp_path / "out")


def test_a_worker_that_is_killed_changes_nothing(
    raw: Path, whole: dict[str, Any], tmp_path: Path
) -> None:
    out, killed = tmp_path / "out", []

    def kill(done: int, total: int) -> None:
        if 1 <= done < total and not killed:
            child = multiprocessing.active_children()[0]
            os.kill(child.pid or 0, signal.SIGKILL)
            killed.append(child.pid)

    written(raw, out, GAUSSIAN, 2, progress=kill)
    assert killed
    assert files(out) == whole[GAUSSIAN]


# --- secrets
# --------------------------------------------------------------------------------------------------


def test_what_is_sent_to_workers_holds_no_key(raw: Path) -> None:
    cohort = gazeveil.read(raw)
    publication = protected(cohort, mechanism(GAUSSIAN), PublicationChoices())
    part = publication.parts[0]
    with pytest.raises(DataError, match="secret keys"):
        pickle.dumps(part)
    keys = [a for a in part.load.args if isinstance(a, MasterKey)]  # type: ignore[attr-defined]
    secret = keys[0]._key
    assert len(secret) == 64
    with drawn_anew():
        sent = pickle.dumps((part,))
    assert secret not in sent
    assert len(sent) < 20_000, "a part must not carry the cohort along"
    one, two = (pickle.loads(sent)[0].recording() for _ in range(2))
    assert not np.array_equal(one.x_deg, two.x_deg)


def test_keys_that_travel_together_are_one_key() -> None:
    key = MasterKey()
    with drawn_anew():
        sent = pickle.dumps((key, key))
    a, b = pickle.loads(sent)
    assert a is b
    assert a.source("x").take(4).tolist() != key.source("x").take(4).tolist()


# --- killed
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "workers", "seed"), [(GAUSSIAN, "2", 1), (KSAME, "1", 3)])
def test_a_killed_run_is_completed(
    raw: Path, whole: dict[str, Any], tmp_path: Path, name: str, workers: str, seed: int
) -> None:
    """It goes on with another number of workers; on a busy machine it may be over too soon."""
    out, chance = tmp_path / "out", random.Random(seed)
    process = begun(raw, out, name, workers, "5", "-")
    parts = chance.randrange(-1, RECORDINGS)
    time.sleep(chance.random() * 0.01)
    stopped = stop_after(process, out, parts, signal.SIGKILL)
    process.communicate()
    assert not out.exists() or not stopped or certified(out)
    if stopped:
        if WorkFolder(out).exists and not out.exists():
            with pytest.raises(DataError, match=r"was interrupted: .* Go on with --resume"):
                check_out(out, resume=False)
        written(raw, out, name, 1, 5, resume=True)
    assert files(out) == whole[name]
    assert nothing_but(tmp_path, "out")


def interrupted(raw: Path, out: Path, name: str = GAUSSIAN) -> None:
    """A run that is killed with some parts finished."""
    process = begun(raw, out, name, "1", "5", "-", pause=3)
    paused(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert lines(out) == 3


#: Puts what a killed run has left where a run to another place would have left it.
Killed = Callable[..., None]


@pytest.fixture(scope="module")
def killed(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """One run by mechanism is killed; nothing that it leaves names its place."""
    folder = tmp_path_factory.mktemp("killed")

    def put(out: Path, name: str = GAUSSIAN) -> None:
        first = folder / mechanism(name).name
        if not WorkFolder(first).exists:
            interrupted(raw, first, name)
        shutil.copytree(WorkFolder(first).path, WorkFolder(out).path)

    return put


def test_what_is_finished_is_not_done_again(raw: Path, tmp_path: Path, killed: Killed) -> None:
    out = tmp_path / "out"
    killed(out)
    done = lines(out)
    # A file that is written again is another one; times of a release are all one in the end.
    before = {p: p.stat().st_ino for p in WorkFolder(out).release.rglob("*.parquet")}
    result = written(raw, out, GAUSSIAN, 1, resume=True)
    assert result.resumed == done
    assert f"{done} of {RECORDINGS} recordings were finished" in result.notes[0]
    kept = [p for p in before if (out / p.relative_to(WorkFolder(out).release)).exists()]
    same = [
        p for p in kept if (out / p.relative_to(WorkFolder(out).release)).stat().st_ino == before[p]
    ]
    assert len(same) >= done


def test_a_finished_part_that_is_damaged_is_done_again(
    raw: Path, whole: dict[str, Any], tmp_path: Path, killed: Killed
) -> None:
    out = tmp_path / "out"
    killed(out)
    journal = WorkFolder(out).journal()
    victim = WorkFolder(out).release / next(iter(journal.parts[0].hashes))
    victim.write_bytes(victim.read_bytes()[:-7])
    result = written(raw, out, GAUSSIAN, 1, resume=True)
    assert result.resumed == len(journal.parts) - 1
    assert files(out) == whole[GAUSSIAN]


def test_a_draw_for_all_recordings_starts_anew_and_says_so(
    raw: Path, tmp_path: Path, killed: Killed
) -> None:
    out = tmp_path / "out"
    killed(out, KSAME)
    assert begun_names(out) is None
    result = written(raw, out, KSAME, 1, None, resume=True)
    assert result.resumed == 0
    assert "drawn anew. Nothing of the first draw was published." in result.notes[0]
    assert certified(out)


def test_a_run_killed_after_the_release_stands_is_over(
    raw: Path, tmp_path: Path, killed: Killed
) -> None:
    # Between giving the release its name and removing the work folder.
    out = tmp_path / "out"
    killed(out)
    folder = WorkFolder(out)
    kept = tmp_path / "kept"
    shutil.copytree(folder.path, kept)
    written(raw, out, GAUSSIAN, 1, resume=True)
    before = files(out)
    shutil.copytree(kept, folder.path)
    shutil.rmtree(folder.release)
    with folder.journal_file.open("a") as file:
        file.write('{"finished": true}\n')
    with pytest.raises(DataError, match="exists and is not an empty folder"):
        check_out(out, resume=False)
    written(raw, out, GAUSSIAN, 1, resume=True)
    assert files(out) == before
    assert not folder.exists


def test_the_key_file_of_a_killed_run_is_its_own(raw: Path, tmp_path: Path, killed: Killed) -> None:
    out, key = tmp_path / "out", tmp_path / "who.json"
    choices = PublicationChoices(key_file=key)
    killed(out)
    written(raw, tmp_path / "other", GAUSSIAN, 1, choices=choices)  # the same seed, the same names
    written(raw, out, GAUSSIAN, 1, resume=True, choices=choices)
    assert {p for p, *_ in read_key(key).recordings.values()} == {
        r.person for r in gazeveil.read(out)
    }
    assert key.stat().st_mode & 0o777 == 0o600


def test_names_of_any_bytes_are_released(raw: Path, tmp_path: Path) -> None:
    # Archives of other systems hold names that are no UTF-8; U+0085 and U+2028 break lines.
    folder, key = tmp_path / "in", tmp_path / "key.json"
    folder.mkdir()
    names = (b"M\xfcller", b"\xfe", "x\x85y\u2028z".encode())
    recording = next(iter(gazeveil.read(raw)))
    rows = zip(recording.t_ns / 1e9, recording.x_deg, recording.y_deg, strict=True)
    text = "t_s,x_deg,y_deg\n" + "".join(f"{t},{x},{y}\n" for t, x, y in rows if x == x)
    for name in names:
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name + b".csv")).write_text(text)
    people = {"M\\udcfcller", "\\udcfe", "x\x85y\u2028z"}
    with pytest.warns(ReadingWarning, match="a person of its own") as told:
        assert {r.person for r in gazeveil.read(folder)} == people
    assert all(str(w.message).isprintable() for w in told)
    written(folder, tmp_path / "out", GAUSSIAN, choices=PublicationChoices(key_file=key))
    assert certified(tmp_path / "out")
    who = read_key(key)
    assert {person for person, *_ in who.recordings} == people
    begin_journal(tmp_path / "journal", JournalHead("recording", {"in": "\udcfe"}, who))
    assert read_journal(tmp_path / "journal").head.names == who


# --- refused
# --------------------------------------------------------------------------------------------------


def test_another_choice_is_not_mixed_in(raw: Path, tmp_path: Path, killed: Killed) -> None:
    out = tmp_path / "out"
    killed(out)
    with pytest.raises(DataError, match=r"cannot go on.*its parameters.*--instead-of"):
        written(raw, out, "gaussian:sigma_deg=4", 1, resume=True)
    assert lines(out) >= 3, "what is finished stays"
    assert not out.exists()
    assert clean(out)
    assert nothing_but(tmp_path)


def test_another_input_is_not_mixed_in(raw: Path, tmp_path: Path, killed: Killed) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(raw, source)
    killed(out)
    for file in source.rglob("*.parquet"):
        os.utime(file, ns=(1, 1))
    with pytest.raises(DataError, match="no longer the same: the file of person"):
        written(source, out, GAUSSIAN, 1, resume=True)
    shutil.rmtree(source)
    gazeveil.simulate(5, 2, 8.0, 250.0, seed=3).write(source)
    with pytest.raises(DataError, match="The recordings are not those"):
        written(source, out, GAUSSIAN, 1, resume=True)
    assert not out.exists()


def test_two_runs_do_not_write_one_release(raw: Path, tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path / "out")
    folder.make()
    for resume in (True, False):
        with folder.locked(), pytest.raises(DataError, match="Another run is writing"):
            written(raw, tmp_path / "out", GAUSSIAN, resume=resume)


def test_a_run_that_finds_its_place_taken_is_not_charged(raw: Path, tmp_path: Path) -> None:
    out, ledger = tmp_path / "out", ReleaseLedger.create(tmp_path / "ledger.json")
    cohort, folder, another = gazeveil.read(raw)[:2], WorkFolder(out), contextlib.ExitStack()

    def say(step: str, sentence: str) -> None:
        if sentence.startswith("ledger:"):  # charged; now another run is quicker
            folder.make()
            another.enter_context(folder.locked())
            begin_journal(folder.journal_file, JournalHead("recording", {}, PublicNames({})))

    recipe = Recipe(raw, GAUSSIAN, PublicationChoices(), battery="none")
    with another, pytest.raises(DataError, match="Another run is writing"):
        publish(recipe, cohort, out, Watcher(say), charging=Charging(ledger))
    assert [entry["state"] for entry in ledger.releases] == ["cancelled"]


def test_the_work_folder_is_for_its_owner_alone(tmp_path: Path, killed: Killed) -> None:
    killed(tmp_path / "out")
    folder = WorkFolder(tmp_path / "out")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.journal_file.stat().st_mode & 0o777 == 0o600


def test_an_unreadable_file_in_the_middle_releases_nothing(raw: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(raw, source)
    damaged = sorted((source / "recordings").glob("*.parquet"))[5]
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    with pytest.raises(GazeveilError, match=str(damaged)) as refused:
        written(source, tmp_path / "out", GAUSSIAN)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.heavy), "2"])
def test_a_full_disk_releases_nothing(raw: Path, tmp_path: Path, workers: str) -> None:
    out = tmp_path / "out"
    process = begun(raw, out, GAUSSIAN, workers, "5", "-", "5000")
    _, wrong = process.communicate()
    assert process.returncode == 2
    assert "There is no room for the release" in wrong
    assert wrong.count("\n") == 1
    assert nothing_but(tmp_path), "no part was finished, so nothing is left"


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.heavy), "2"])
def test_ctrl_c_releases_nothing_and_says_how_to_go_on(
    raw: Path, whole: dict[str, Any], tmp_path: Path, workers: str
) -> None:
    out = tmp_path / "out"
    process = begun(raw, out, GAUSSIAN, workers, "5", "-", pause=2)
    paused(process)
    os.killpg(process.pid, signal.SIGINT)
    os.killpg(process.pid, signal.SIGCONT)
    _, wrong = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped, nothing was released." in wrong
    assert "go on with --resume" in wrong
    assert "Traceback" not in wrong
    assert not out.exists()
    written(raw, out, GAUSSIAN, 1, resume=True)
    assert files(out) == whole[GAUSSIAN]


def test_a_number_of_workers_that_is_none_is_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="workers"):
        written(raw, tmp_path / "out", GAUSSIAN, 0)
    assert nothing_but(tmp_path)


# --- from the command line
# --------------------------------------------------------------------------------------------------


def published(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gazeveil.cli.main", "publish", *arguments, "--attacks", "none"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GAZEVEIL_HOME": str(home)},
    )


def killed_publication(home: Path, out: Path, *asked: str) -> None:
    """A publication that is killed; on a busy machine the first one may be over too soon."""
    for _ in range(5):
        process = published(home, *asked)
        stopped = stop_after(process, out, 2, signal.SIGKILL)
        _, wrong = process.communicate()
        if stopped and not out.exists():
            return
        assert out.exists(), wrong
        shutil.rmtree(home)
        shutil.rmtree(out)
        clean(out)
    pytest.fail("it was over before it could be killed, five times")


def counted(home: Path) -> list[str]:
    """States of the releases that count in the ledger."""
    ledger = json.loads((home / "releases.json").read_text())
    return [r["state"] for r in ledger["releases"] if r["state"] != "cancelled"]


@pytest.mark.parametrize("name", [GAUSSIAN, pytest.param(KSAME, marks=pytest.mark.heavy)])
def test_a_killed_publication_is_completed_verified_and_counted_once(
    raw: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, home = tmp_path / "out", tmp_path / "home"
    asked = (str(raw), str(out), "-m", name)
    killed_publication(home, out, *asked)
    monkeypatch.setenv("GAZEVEIL_HOME", str(home))
    refused = command_line.gazeveil("publish", *asked, "--attacks", "none")
    assert refused.code == 2
    assert "Go on with --resume, or remove it with --instead-of" in refused.err
    resumed = command_line.gazeveil("publish", *asked, "--attacks", "none", "--resume")
    assert resumed.code == 0, resumed.err
    assert ("were finished before the interruption" in resumed.out) is (name == GAUSSIAN)
    assert ("all recordings are drawn anew" in resumed.out) is (name == KSAME)
    assert counted(home) == ["finished"]
    checked = command_line.gazeveil("verify", out, "--against", raw)
    assert checked.code == 0, checked.out + checked.err
    assert nothing_but(tmp_path, "home", "out", "out.publish.toml")


def test_protect_resumes_too(
    raw: Path, whole: dict[str, Any], tmp_path: Path, killed: Killed
) -> None:
    out = tmp_path / "out"
    killed(out)
    options = ("-m", GAUSSIAN, "--seed", "5", "--resume", "--workers", "2")
    done = command_line.gazeveil("protect", raw, out, *options)
    assert done.code == 0, done.err
    assert "recordings were finished before the interruption" in done.out
    assert files(out) == whole[GAUSSIAN]


PIECES = "mosaic:epsilon=10,r_deg=2,piece_s=2,gap_s=1,crowd=3"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Six people whose trackers differ in rate and whose recordings differ in length."""
    made = []
    for i, r in enumerate(gazeveil.simulate(6, 2, 7.0, 60.0, seed=2)):
        part = slice(0, len(r) - 5 * (i % 4))
        made.append(
            gazeveil.Recording(
                r.person,
                r.stimulus,
                r.t_ns[part],
                r.x_deg[part],
                r.y_deg[part],
                r.valid[part],
                space=r.space,
                rate_hz=60.0,
            )
        )
    gazeveil.Cohort(made, {r.person: {"age": 20 + i} for i, r in enumerate(made)}).write(
        tmp_path / "in"
    )
    return tmp_path / "in"


def test_pieces_are_published_once(source: Path, tmp_path: Path) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    recipe = Recipe(source, PIECES, PublicationChoices(durations="common"), battery="none")
    cohort, said = gazeveil.read(source), list[str]()
    watcher = Watcher(say=lambda step, sentence: said.append(f"{step} {sentence}"))
    publish(recipe, cohort, tmp_path / "out", watcher, charging=Charging(ledger, 10**9))
    assert any("each under a name of its own" in line for line in said)
    assert any("24 pieces by mosaic" in line for line in said)
    assert not any(line.startswith("plan lengths") for line in said)
    assert any("factor of e to the power of 10" in line for line in said)
    assert any("plan per person at most: All pieces of one participant: epsilon" in s for s in said)
    assert any(s.startswith("plan headsets:") and "--preset public-vr" in s for s in said)
    assert verify(tmp_path / "out", against=cohort).passed
    alignment = read_certificate(tmp_path / "out")["alignment"]
    assert alignment["before_protection"]
    assert alignment["rate_hz"] == "60"

    done = CliRunner().invoke(
        app, ["inspect", str(tmp_path / "out"), "--json", str(tmp_path / "i.json")]
    )
    assert done.exit_code == 0, done.output
    assert "24 (each has a name of its own" in done.output
    assert "Pieces (10 of 24)" in done.output
    assert "person" not in done.output.split("Certificate")[0]
    figures = json.loads((tmp_path / "i.json").read_text("utf-8"))
    assert (figures["pieces"], figures["people"]) == (24, {})

    for again in (PIECES, "kaleido:epsilon=1,w=30,r_deg=2"):
        second = Recipe(source, again, PublicationChoices(durations="common"), battery="none")
        with pytest.raises(BudgetError, match="whatever budget is left"):
            publish(second, cohort, tmp_path / "more", charging=Charging(ledger, 10**9))
        assert not (tmp_path / "more").exists()


def test_a_plan_of_pieces_names_at_most_the_cost_of_the_release(source: Path) -> None:
    cohort, choices = gazeveil.read(source), PublicationChoices(durations="common")
    looks = look_at(cohort, True)

    def lines(text: str) -> dict[str, str]:
        return dict(plan_of(cohort, looks, mechanism(text), choices, "none").lines)

    found = re.search(r"epsilon = (\d+)", lines(PIECES)["per person at most"])
    released = protected(cohort, mechanism(PIECES), choices).release.guarantee
    assert found
    assert released.user["epsilon"] <= int(found[1]) <= 2 * released.user["epsilon"]
    assert "headsets" in lines(PIECES)
    assert "headsets" not in lines(f"{PIECES},paths=near")


def test_presets_are_compared_with_their_numbers(source: Path) -> None:
    recipe = Recipe(source, PIECES, PublicationChoices(), battery="none")
    names = ["public-samples", "public-pieces"]
    samples, pieces = compare(recipe, names, gazeveil.read(source), Watcher())
    assert samples["promise"] == "epsilon-w-r-dp, proved: epsilon = 1, w_samples = 30, r_deg = 2"
    assert "needs at least 12" in pieces["refused"] or "crowd = 12" in pieces["refused"]


def test_an_attack_on_pieces_is_part_of_the_certificate(source: Path, tmp_path: Path) -> None:
    choices = PublicationChoices(durations="common")
    recipe = Recipe(source, PIECES, choices, battery="quick", repetitions=1, utilities=())
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    attack = read_certificate(tmp_path / "out")["attack"]
    assert attack["asked"] == "pieces"
    assert "% of all pieces" in (tmp_path / "out" / "PRIVACY.md").read_text()
