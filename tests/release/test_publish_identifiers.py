"""Identifiers planted in every format: none of them is in any byte, name or time of a release, and
what is left of rates, counts, lengths and losses links nothing to anybody.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import gazeveil
from gazeveil import Cohort, Recording
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from tests.support.identifiers import FORMATS, plant, traces_in
from tests.support.recordings import real

#: A dataset of fixations alone has no samples to protect.
SAMPLES = [name for name in FORMATS if name != "neuroliaa"]


def published(source: Path, out: Path, mechanism: str, **choices: object) -> Cohort:
    recipe = Recipe(
        source,
        mechanism,
        PublicationChoices(**{"durations": "common", **choices}),  # type: ignore[arg-type]
        battery="none",
    )
    # What is planted is one recording under two names, which a test release alone takes.
    answers = ("person", "copy", "screen")
    publish(recipe, gazeveil.read(source, confirmed=answers), out, seed=1)
    return gazeveil.read(out)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("name", SAMPLES)
def test_no_planted_identifier_is_in_a_release(name: str, tmp_path: Path) -> None:
    assert plant(name, tmp_path / "in")
    assert traces_in(tmp_path / "in")
    copy = published(tmp_path / "in", tmp_path / "out", "gaussian:sigma_deg=2")
    assert len(copy) > 0
    assert traces_in(tmp_path / "out") == []


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")
@pytest.mark.parametrize("to", ["csv", "bids"])
@pytest.mark.parametrize("name", ["pupil-invisible", "parquet", "eyenavgs"])
def test_no_planted_identifier_is_in_a_release_of_another_format(
    name: str, to: str, tmp_path: Path
) -> None:
    plant(name, tmp_path / "in")
    published(tmp_path / "in", tmp_path / "out", "gaussian:sigma_deg=2", to=to)
    assert traces_in(tmp_path / "out") == []


def signature(recording: Recording) -> tuple[float, int, float, int]:
    """What links recordings without any look at gaze."""
    lost = int((~recording.valid).sum())
    return recording.rate_hz, len(recording), recording.duration_s, lost


@pytest.mark.data
def test_rates_counts_lengths_and_losses_of_eyenavgs_link_nothing(tmp_path: Path) -> None:
    source = real("eyenavgs_nthu")
    scenes = sorted(p.name for p in source.iterdir() if p.is_dir())[:2]
    raw = gazeveil.read(source).select(stimuli=scenes)
    raw = Cohort(raw.items[:: max(1, len(raw) // 12)], raw.people)
    signatures = {signature(r) for r in raw}
    assert len({s[0] for s in signatures}) > 4  # rates of their own: the danger is there
    recipe = Recipe(
        source,
        "gaussian:sigma_deg=2",
        PublicationChoices(durations="common", keep=("stimulus",)),
        battery="none",
    )
    publish(recipe, raw, tmp_path / "out")
    copy = gazeveil.read(tmp_path / "out")
    assert len({r.rate_hz for r in copy}) == 1
    for stimulus in scenes:  # one signature for each scene: nothing but guessing
        assert len(copy.select(stimuli=[stimulus])) == len(raw.select(stimuli=[stimulus]))
        assert len({signature(r) for r in copy.select(stimuli=[stimulus])}) == 1


@pytest.mark.data
def test_lengths_that_are_kept_are_printed_as_not_covered(tmp_path: Path) -> None:
    plant("eyenavgs", tmp_path / "in")
    recipe = Recipe(tmp_path / "in", "gaussian:sigma_deg=2", PublicationChoices(), battery="none")
    done = publish(recipe, gazeveil.read(tmp_path / "in"), tmp_path / "out")
    assert "how long each recording is" in done.description.guarantee.not_covered
