"""From a folder of recordings to a release: inventory, plan, scrub, align, protect, attack,
certify.

Every step says one thing, by way of `say(step, sentence)`. Nothing is written before the plan is
made, and nothing stands under its name before it is certified.

The attack step: re-identification rate and utility of a release.

The mechanism makes test releases from the aligned recordings, with the same parameters. Then an
attacker with raw recordings attacks the published files themselves.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gazeveil import checks
from gazeveil.attacks.registry import NOBODY
from gazeveil.errors import GazeveilError
from gazeveil.evaluation.report.findings import Findings, ReleaseFindings
from gazeveil.evaluation.run import CopyWarning, Progress, evaluate, study_of_copy
from gazeveil.evaluation.run import run as run_study
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.reading import ReadingWarning, read
from gazeveil.io.source import staged
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.privacy.publication.alignment import aligned, look_at
from gazeveil.privacy.publication.certificate import Description, SigningKey, write_certificate
from gazeveil.privacy.publication.ledger import Charging, charged
from gazeveil.privacy.publication.names import check_key_file, raw_names, write_key
from gazeveil.privacy.publication.outputs import output
from gazeveil.privacy.publication.page import analysis_in_words, attack_in_words, found_in_words
from gazeveil.privacy.publication.protecting import (
    channels_of,
    check_clock,
    described_file,
    protected,
)
from gazeveil.privacy.publication.publication import Publication, check_keep
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.registry import mechanism as mechanism_named
from gazeveil.privacy.registry import protect
from gazeveil.release.inventory import inventory
from gazeveil.release.plan import ReleasePlan, feature_table, plan_of, planned_promise
from gazeveil.release.recipe import Recipe, preset, with_choices
from gazeveil.release.run import Running, begun, interrupted_names, run
from gazeveil.release.stop_sign import OpenQuestion, open_questions, refuse

#: Analyses that are tried unless others are named.
USUAL_UTILITIES = ("density", "signal", "events")

# Figures for the certificate: utility, metric -> words and unit.
_WORDS = {
    ("density", "jsd"): (
        "where people look, as a map of all of them",
        "Jensen-Shannon divergence",
        "bits",
    ),
    ("signal", "rmse_deg"): ("where one person looks at one moment", "error", "degrees"),
    ("events", "fixation_duration_wasserstein_s"): ("how long fixations last", "error", "s"),
    ("events", "saccade_amplitude_wasserstein_deg"): ("how long saccades are", "error", "degrees"),
}


def measure(
    cohort: Cohort,
    mechanism: Mechanism[Any],
    battery: str,
    utilities: Sequence[str] = USUAL_UTILITIES,
    repetitions: int = 10,
    tables: str = "events",
    progress: Progress | None = None,
    executor: int | str | None = None,
    files: Cohort | None = None,
) -> dict[str, Any]:
    """Attack releases of a mechanism.

    Parameters
    ----------
    cohort : Cohort
        Aligned raw recordings, under raw names.
    mechanism : Mechanism
        With the parameters of the release.
    battery : str
        Who attacks.
    utilities : sequence of str
        Which analyses are tried.
    repetitions : int
        Draws of split and noise.
    tables : str
        What a mechanism of the kind table protects.
    progress : callable, optional
        Called with cells done and all cells.
    executor : int or str, optional
        Processes, or a cluster.
    files : Cohort, optional
        What is published, under raw names.

    Returns
    -------
    dict
        `attack` and `utility` for the certificate, each None where it could not be computed, and
        `said`, sentences for the screen.
    """
    if mechanism.kind in ("map", "people"):
        why = "Nobody attacks: maps hold no recording of a single person."
        return {"attack": None, "utility": None, "said": (why,)}
    try:
        results = evaluate(
            cohort,
            [mechanism],
            battery,
            () if mechanism.kind == "table" else tuple(utilities),
            ("raw/private", "private/private"),
            repetitions,
            executor=executor,
            progress=progress,
            split="stimulus" if len(cohort.stimuli) > 1 else "halves",
            tables=tables,
        )
    except GazeveilError as error:
        return {"attack": None, "utility": None, "said": (f"Not measured: {error}",)}
    found = Findings(results)
    failures = tuple(dict.fromkeys(f"Not computed: {f['sentence']}" for f in results.failures))
    if not found.protected:
        return {"attack": None, "utility": None, "said": failures or ("Nothing was measured.",)}
    attack = None if battery == NOBODY else _attack(found.protected[0], battery, repetitions)
    if attack is not None:
        attack |= {"asked": "pieces"} if isinstance(mechanism, PieceMechanism) else {}
        attack["files"] = _of_files(cohort, files, mechanism, battery, repetitions, executor)
    utility = _utility(found)
    return {"attack": attack, "utility": utility, "said": (*_said(attack, utility), *failures)}


def _attack(release: ReleaseFindings, battery: str, repetitions: int) -> dict[str, Any] | None:
    shown = release.shown
    if shown is None:
        return None
    return {
        "attacker": shown.attack,
        "asked": "people",
        "people": shown.n,
        "found": shown.found,
        "guessing": max(1, round(shown.chance * shown.n)),
        "rate": round(shown.value, 4),
        "low": round(shown.low, 4),
        "high": round(shown.high, 4),
        "chance": round(shown.chance, 4),
        "p_value": None if math.isnan(shown.p_value) else _rounded(shown.p_value),
        "fewest": release.fewest,
        "scenario": shown.scenario,
        "battery": battery,
        "tried": release.tried,
        "repetitions": repetitions,
    }


def _of_files(
    cohort: Cohort,
    files: Cohort | None,
    mechanism: Mechanism[Any],
    battery: str,
    repetitions: int,
    executor: int | str | None,
) -> dict[str, Any] | None:
    """Attack the published files themselves.

    Return None where names do not last, or raw recordings and files have too little in common.
    """
    if files is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CopyWarning)
            study = study_of_copy(
                cohort,
                files,
                (battery,),
                repetitions=repetitions,
                split="stimulus" if len(cohort.stimuli) > 1 else "halves",
                independent=mechanism.noise_unit == "recording",
            )
            found = Findings(run_study(study, None, executor)).protected
    except GazeveilError:
        return None
    return _attack(found[0], battery, repetitions) if found else None


def _utility(found: Findings) -> dict[str, object] | None:
    """Each analysis beside raw recordings against raw ones, and beside having no data."""
    rows = []
    for m in found.protected[0].measures:
        words = _WORDS.get((m.utility, m.metric))
        if words is None or not math.isfinite(m.value):
            continue
        whole = None if found.raw is None else found.raw.measure(m.utility, m.metric)
        rows.append(
            {
                "analysis": words[0],
                "metric": words[1],
                "value": _rounded(m.value),
                "unit": words[2],
                "raw": None if whole is None or whole.value == 0 else _rounded(whole.value),
                "reference": _rounded(m.chance) if math.isfinite(m.chance) else None,
            }
        )
    return {"analyses": rows} if rows else None


def _rounded(value: float) -> float:
    # Figures come from the recordings without noise: a third digit tells who took part.
    shown = float(f"{value:.2g}")
    return int(shown) if abs(shown) >= 10 else shown


def _said(attack: dict[str, Any] | None, utility: dict[str, object] | None) -> tuple[str, ...]:
    said = list(attack_in_words(attack)) if attack is not None else []
    rows: Any = [] if utility is None else utility["analyses"]
    return (*said, *(f"{analysis_in_words(row)}." for row in rows))


#: The steps, in their order.
STEPS = ("inventory", "plan", "scrub", "align", "protect", "attack", "certify")

#: Formats of maps and feature tables.
FILE_FORMATS = ("parquet", "csv")

#: The recipe inside a release.
RECIPE_NAME = "publish.toml"


@dataclass(frozen=True)
class Watcher:
    """Observer of a publication.

    Parameters
    ----------
    say : callable
        `say(step, sentence)`.
    track : callable
        `track(items, words)` iterates with a progress bar.
    cells : callable
        `cells(words)` is a context that gives a function of cells done and all cells.
    ask : callable
        `ask(questions)` is told what reading guessed; it returns if that is right, else it raises.
    """

    say: Callable[[str, str], None] = lambda step, sentence: None
    track: Callable[[Sequence[Any], str], Iterable[Any]] = lambda items, words: items
    cells: Callable[[str], AbstractContextManager[Any]] = lambda words: nullcontext(None)
    ask: Callable[[Sequence[OpenQuestion]], None] = refuse


@dataclass(frozen=True)
class Published:
    """Result of a publication.

    Parameters
    ----------
    folder : Path
        Where.
    description : Description
        What the certificate says.
    measured : mapping
        What the attack step found.
    """

    folder: Path
    description: Description
    measured: Mapping[str, Any] = field(default_factory=dict)


def planned(
    recipe: Recipe, cohort: Cohort, watcher: Watcher, charging: Charging | None = None
) -> ReleasePlan:
    """The first two steps: what is in the input, and what will be done with it; `charging` notes
    who is in it.
    """
    chosen = mechanism_named(recipe.mechanism)
    check_clock(chosen)
    check_keep(recipe.choices, channels_of(recipe.choices, chosen.kind), cohort.people)
    _check_format(recipe.choices.to, chosen, cohort)
    looks = look_at(
        cohort,
        True,
        lambda numbers: watcher.track(numbers, "Looking at recordings"),
        charging.seen.note if charging is not None else lambda recording: None,
    )
    watcher.ask(open_questions(cohort, looks, recipe.source))
    found = inventory(
        recipe.source,
        people=cohort.people,
        progress=lambda files: watcher.track(files, "Inventory"),
    ).keeping(recipe.choices.keep)
    kinds = Counter(f.kind for f in found.findings).most_common()
    counts = ", ".join(f"{kind} {count}" for kind, count in kinds)
    watcher.say("inventory", f"{found.sentence()} {counts}".strip())
    plan = plan_of(
        cohort, looks, chosen, recipe.choices, recipe.battery, recipe.repetitions, recipe.table
    )
    for heading, sentence in plan.lines:
        watcher.say("plan", f"{heading}: {sentence}")
    return plan


def publish(
    recipe: Recipe,
    cohort: Cohort,
    out: Path,
    watcher: Watcher | None = None,
    seed: int | None = None,
    signing_key: SigningKey | None = None,
    charging: Charging | None = None,
    running: Running | None = None,
) -> Published:
    """Publish recordings.

    Parameters
    ----------
    recipe : Recipe
        Every choice.
    cohort : Cohort
        The recordings that it names, read.
    out : Path
        A folder that does not exist yet or is empty.
    watcher : Watcher, optional
        Who is told what happens.
    seed : int, optional
        For tests: noise, names and order follow from it.
    signing_key : SigningKey, optional
        Signs the certificate.
    charging : Charging, optional
        The ledger that this release is charged to.
    running : Running, optional
        Who works, and whether a run that was interrupted goes on.
    """
    told = Watcher() if watcher is None else watcher
    charging = charging or Charging()
    # Under a seed nothing is promised, and no participant is looked up.
    plan = planned(recipe, cohort, told, charging if seed is None else None)
    recipe = with_choices(
        recipe,
        rate_hz=plan.alignment.rate_hz,
        durations=plan.alignment.lengths_s or recipe.choices.durations,
    )
    if plan.named:
        more = "," if ":" in recipe.mechanism else ":"
        recipe = replace(recipe, mechanism=f"{recipe.mechanism}{more}{plan.named}")
    told.say("scrub", "only gaze goes on; nothing else of the files is copied.")
    chosen = mechanism_named(recipe.mechanism)
    told.say("align", _aligned(plan, recipe, chosen))
    work = running or Running()
    job = _Job(recipe, plan, chosen, out, told, seed, signing_key, charging, work)
    published = job.recordings() if chosen.kind in ("stream", "cohort") else job.file()
    beside = out.with_name(out.name + ".publish.toml")
    beside.write_text(recipe.text(inside=False), encoding="utf-8", newline="\n")
    told.say("certify", f"{out}/PRIVACY.md; the choices are in {beside}")
    return published


def _check_format(to: str, chosen: Mechanism[Any], cohort: Cohort) -> None:
    """Refuse a format that cannot be written before any work is done."""
    if chosen.kind in ("stream", "cohort"):
        output(to, cohort.read_as or "")
    elif to not in FILE_FORMATS:
        words = {"map": "maps", "table": "feature tables"}.get(chosen.kind, chosen.kind)
        checks.refuse("publish", "to", f"one of {', '.join(FILE_FORMATS)} for {words}", to)


def _counted(count: int, kind: str) -> str:
    noun, of = ("map", "") if kind == "map" else ("row", " of features")
    return f"{count:,} {noun}{'' if count == 1 else 's'}{of}"


def _aligned(plan: ReleasePlan, recipe: Recipe, chosen: Mechanism[Any]) -> str:
    if chosen.kind == "map":
        return "maps hold no person, no session and no time."
    alignment, keep = plan.alignment, recipe.choices.keep
    if isinstance(chosen, PieceMechanism):
        return f"one clock of {float(alignment.rate_hz or 0):g} Hz, then pieces at public times."
    parts = []
    if alignment.times_kept:
        parts.append("times as they are")
    else:
        rate = (
            "their own rates" if alignment.rate_hz is None else f"{float(alignment.rate_hz):g} Hz"
        )
        parts.append(f"times from zero at {rate}")
    parts.append("people as they are" if "person" in keep else "fresh pseudonyms")
    parts.append("sessions as they are" if "session" in keep else "sessions numbered anew")
    key = recipe.choices.key_file
    parts.append("no key is kept" if key is None else f"the key goes to {key}, for you alone")
    return ", ".join(parts) + "."


@dataclass(frozen=True)
class _Job:
    """Remaining steps of a publication after all decisions."""

    recipe: Recipe
    plan: ReleasePlan
    chosen: Mechanism[Any]
    out: Path
    told: Watcher
    seed: int | None
    signing_key: SigningKey | None
    charging: Charging
    running: Running

    def attack(self, files: Cohort | None = None) -> dict[str, Any]:
        """The attack step; done when everything is written and nothing is certified. `files` are
        those that were written, under raw names.
        """
        recipe = self.recipe
        if recipe.battery == "none" and not recipe.utilities:
            self.told.say("attack", "nobody attacked, as you asked; the certificate says so.")
            return {}
        with self.told.cells("Attacking") as progress:
            found = measure(
                aligned(self.plan.cohort, self.plan.alignment),
                self.chosen,
                recipe.battery,
                USUAL_UTILITIES if recipe.utilities is None else recipe.utilities,
                recipe.repetitions,
                recipe.table,
                progress,
                self.running.executor,
                files,
            )
        for sentence in found["said"]:
            self.told.say("attack", sentence)
        return found

    def _written(self, publication: Publication, folder: Path) -> Cohort | None:
        """Read the written release under raw names.

        Return None where names do not last, or without an attack.
        """
        if publication.pieces or self.recipe.battery == NOBODY:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReadingWarning)
                return raw_names(read(folder), publication.names, self.plan.cohort.people)
        except GazeveilError:
            return None

    def recordings(self) -> Published:
        """A release of recordings."""
        recipe, plan, running = self.recipe, self.plan, self.running
        names = begun(self.out, running.resume, self.charging)
        publication = protected(
            plan.cohort, self.chosen, recipe.choices, self.seed, plan.looks, names=names
        )
        promise = (
            planned_promise(self.chosen, plan.looks, plan.alignment, recipe.choices)
            or publication.release.guarantee
        )
        measured: dict[str, Any] = {}

        def after(folder: Path) -> Mapping[str, Any]:
            count = len(publication.parts)
            noun = ("piece" if publication.pieces else "recording") + "s" * (count != 1)
            self.told.say("protect", f"{count:,} {noun} by {self.chosen.name}.")
            for note in (*publication.notes, *publication.release.for_curator):
                self.told.say("protect", note)
            measured.update(self.attack(self._written(publication, folder)))
            return measured

        texts = {RECIPE_NAME: recipe.text(inside=True)}
        publication = replace(publication, measure=after, texts=texts)
        with charged(
            publication.names,
            promise,
            self.out,
            self.charging,
            table=bool(publication.table.rows),
            pieces=publication.pieces,
            resumed=names is not None,
            # What lies there under other names is another run's, which holds the place.
            left=lambda: interrupted_names(self.out) == publication.names,
        ) as answer:
            if answer:
                self.told.say("protect", f"ledger: {answer}")
            with self.told.cells("Protecting") as progress:
                done = run(
                    publication,
                    self.out,
                    raw=plan.cohort,
                    executor=running.executor,
                    resume=running.resume,
                    progress=progress or (lambda done, total: None),
                    signing_key=self.signing_key,
                )
        for note in done.notes:
            self.told.say("protect", note)
        return Published(self.out, publication.description(done.summaries, measured), measured)

    def file(self) -> Published:
        """A release of maps or of a feature table: one file in a certified folder."""
        recipe, chosen = self.recipe, self.chosen
        if recipe.choices.key_file is not None:
            check_key_file(recipe.choices.key_file, self.out)
        data: Any = aligned(self.plan.cohort, self.plan.alignment)
        if chosen.kind == "table":
            data = feature_table(data, recipe.table, hasattr(chosen, "length"))
        release = protect(data, chosen, self.seed)
        write, names, description = described_file(
            release, recipe.choices, self.seed, self.plan.cohort, self.plan.alignment
        )
        noun = "maps" if chosen.kind == "map" else "features"
        with charged(names, release.guarantee, self.out, self.charging) as answer:
            for sentence in (*([f"ledger: {answer}"] if answer else []), *release.for_curator):
                self.told.say("protect", sentence)
            with staged(self.out) as folder:
                write(folder / f"{noun}.{recipe.choices.to}")
                (folder / RECIPE_NAME).write_text(
                    recipe.text(inside=True), encoding="utf-8", newline="\n"
                )
                self.told.say(
                    "protect", f"{_counted(len(release.data), chosen.kind)} by {chosen.name}."
                )
                measured = self.attack()
                description = replace(
                    description, attack=measured.get("attack"), utility=measured.get("utility")
                )
                write_certificate(folder, description, self.signing_key)
        if recipe.choices.key_file is not None:
            write_key(recipe.choices.key_file, names)
        return Published(self.out, description, measured)


def compare(
    recipe: Recipe, presets: Sequence[str], cohort: Cohort, watcher: Watcher
) -> list[dict[str, Any]]:
    """Compare presets under the other choices of a recipe.

    A row has the preset's name, promise, re-identification rate and utility, or the reason why it
    is not possible.
    """
    mechanisms = {name: preset(name).mechanism for name in presets}
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory(prefix="gazeveil-compare-") as scratch:
        for name, mechanism in mechanisms.items():
            watcher.say("compare", f"{name}: {mechanism}")
            # Questions were answered before, and the steps of a scratch release are not reported.
            quiet = replace(watcher, say=lambda step, sentence: None)
            tried = replace(recipe, mechanism=mechanism)
            try:
                done = publish(tried, cohort, Path(scratch) / name, quiet)
            except GazeveilError as error:
                rows.append({"preset": name, "refused": str(error)})
                continue
            attack, utility = (done.measured.get(n) for n in ("attack", "utility"))
            promise = done.description.guarantee
            numbers = ", ".join(f"{n} = {format_exact(v)}" for n, v in promise.numbers.items())
            rows.append(
                {
                    "preset": name,
                    "promise": f"{promise.definition}, {promise.status}: {numbers}",
                    "recognised": "not attacked" if attack is None else found_in_words(attack),
                    "attack": attack,
                    "analyses": [] if utility is None else utility["analyses"],
                }
            )
            watcher = replace(watcher, ask=lambda questions: None)
    return rows
