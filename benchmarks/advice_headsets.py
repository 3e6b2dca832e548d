"""Rows of `gazeveil advise --kind vr` on samples: the participants and videos of the front on
VR-EyeTracking.

    python -m benchmarks.advice_headsets --run results/advice-headsets [--workers 1]

Errors come from the study `advice_headsets.toml`, rates from the front of
`docs/results/vr-eyetracking.md`; that of preset `public-vr` from videos which it was not chosen on,
on the same page. Rows of feature tables and of heat maps with noise stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from benchmarks.advice_newest import holders
from benchmarks.advice_page import write_page
from benchmarks.advice_references import anchors
from benchmarks.advice_table import HEADSETS, METRICS, ROOT, TABLE, measured, words

import gazeveil
from gazeveil.evaluation.run import run
from gazeveil.papers.study_file import read
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice import AdviceRow, advice_rows
from gazeveil.release.recipe import preset

STUDY = Path(__file__).with_suffix(".toml")
DATA, PEOPLE, RATE_HZ = "VR-EyeTracking, 18 people", 18, 30
NEAR = str(mechanism(preset("public-vr").mechanism))

#: Names of mechanisms as the front has them.
NAMES = {
    "DPGazeSynth": "dpgazesynth",
    "event-synth-PD": "event-synth-pd",
    "Gaussian noise": "gaussian",
    "Kaleido": "kaleido",
    "spatial downsampling": "spatial",
    "temporal downsampling": "temporal",
}

_PIECES = (
    "Needs 12 people who saw the same stimulus, else it is refused. Every piece has a name of its"
    " own: nobody can follow a person from piece to piece, and a second release of the same people"
    " is refused. Somebody who knows where a person looked finds that person's pieces."
)
_NEAR = (
    " Quarters of a second are exchanged among people who look within 25 degrees of one another:"
    " jumps between them are no saccades."
)
_EXCHANGE = (
    " People who face different ways are no crowd: a tenth of the samples lies far beyond the"
    " median error, and nothing says which: it does not say where somebody looked at a given time."
)


def rates() -> dict[str, tuple[str, float, float, float, str]]:
    """Release -> the strongest attacker, its rate in per cent with CI, and who was tried."""
    text = (ROOT / HEADSETS).read_text("utf-8")
    found = {}
    row = r"^\| \d+ ([\w -]+?) \((.*?)\) \| (\d+) \((\d+) to (\d+)\) \| `(.*?)` \|"
    for name, parameters, *rate, attacker in re.findall(row, text, re.MULTILINE):
        value, low, high = map(float, rate)
        found[key_of(name, parameters)] = (attacker, value, low, high, "strong battery, 2 splits")
    # Holders of raw recordings, where one of them finds more.
    for parameters, (attacker, *rate) in holders(text).items():
        if rate[0] > found[key_of("mosaic", parameters)][1]:
            told = "strong battery and holders of raw recordings, 2 splits"
            found[key_of("mosaic", parameters)] = (attacker, *rate, told)
    held = re.search(
        r"^\| white-box, `relink`.*\| \*\*([\d.]+)\*\* \((\d+) to (\d+)\) \|", text, re.M
    )
    assert held is not None
    # All settings are compared where this one was chosen; elsewhere it is found more often.
    elsewhere = f"; {held[1]} % ({held[2]} to {held[3]}) on 12 videos it was not chosen on"
    near = found[NEAR]
    found[NEAR] = (*near[:4], "with raw recordings too" + elsewhere)
    return found


def key_of(name: str, parameters: str) -> str:
    """The full text of a release as the page's tables name it."""
    given = ",".join(
        re.sub(r"(\w+)=(\S+) (deg|s)$", r"\1_\3=\2", p) for p in parameters.split(", ")
    )
    given = re.sub(r"^(\d+)_deg$|^(\d+) deg$", r"sigma_deg=\1\2", given)
    return str(mechanism(f"{NAMES.get(name, name.replace(' ', '-'))}:{given}"))


def rows(run_folder: Path, cohort: gazeveil.Cohort, texts: Sequence[str]) -> Iterator[AdviceRow]:
    """Every purpose of every release."""
    raw, without = anchors(cohort)
    found = rates()
    for text in texts:
        chosen = mechanism(text)
        pieces = chosen.name == "mosaic"
        key = str(chosen)
        note = _PIECES * pieces + _NEAR * (key == NEAR) + _EXCHANGE * ("=exchange" in text)
        attacker, rate, low, high, tried = found[key]
        stated = gazeveil.protect(cohort, text).guarantee.plain
        for purpose, (metric, about, unit) in METRICS.items():
            value, chance = measured(run_folder, text, metric)
            reference = without.get(purpose, chance)
            assert reference is not None
            within = " within a piece" * (purpose == "aoi" and pieces)
            yield AdviceRow(
                purpose,
                "vr",
                text,
                words(text, RATE_HZ),
                getattr(chosen, "crowd", 8 if "k=4" in text else 1),
                stated,
                about + within,
                round(value, 4),
                round(reference, 4),
                unit,
                attacker,
                rate,
                round(100 / PEOPLE, 1),
                DATA,
                HEADSETS,
                tried,
                note,
                raw.get(purpose),
                low,
                high,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    study = read(STUDY).parts[0].study()
    run(study, given.run, given.workers)
    texts = tomllib.loads(STUDY.read_text("utf-8"))["mechanisms"]
    kept = [
        r
        for r in advice_rows()
        if r.kind != "vr" or r.purpose == "ml" or r.mechanism.startswith("heatmap")
    ]
    made = [*kept, *rows(given.run, study.source, texts)]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(f.name for f in fields(AdviceRow))
        writer.writerows(["" if v is None else v for v in astuple(r)] for r in made)
    advice_rows.cache_clear()
    write_page()
    print(f"{TABLE}: {len(made)} rows")


if __name__ == "__main__":
    main()
