"""From a folder of recordings to a release: inventory, plan, scrub, align, protect, attack,
certify.

Every step says one thing, by way of `say(step, sentence)`. Nothing is written before the plan is
made, and nothing stands under its name before it is certified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gazeveil.features import event_features, window_features
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.staging import free, staged
from gazeveil.privacy.api import protect
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.alignment import aligned
from gazeveil.privacy.publication.certificate import Description, write_certificate
from gazeveil.privacy.publication.identities.key_file import check_key_file, write_key
from gazeveil.privacy.publication.part import Part, PartSummary
from gazeveil.privacy.publication.protecting import channels_of, protected
from gazeveil.privacy.publication.publication import Publication
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.publication.single_file import described_file
from gazeveil.privacy.publication.statement import check_keep
from gazeveil.privacy.publication.survey import look_at
from gazeveil.privacy.publication.writing import write_publication
from gazeveil.privacy.registry import mechanism as mechanism_named
from gazeveil.release.inventory import inventory
from gazeveil.release.measuring import USUAL_UTILITIES, measure
from gazeveil.release.plan import ReleasePlan, plan_of
from gazeveil.release.recipe import Recipe, with_choices

#: The steps, in their order.
STEPS = ("inventory", "plan", "scrub", "align", "protect", "attack", "certify")

#: The recipe inside a release.
RECIPE_NAME = "publish.toml"


@dataclass(frozen=True)
class Watcher:
    """Who is told what happens.

    Parameters
    ----------
    say : callable
        `say(step, sentence)`.
    track : callable
        `track(items, words)` iterates with a progress bar.
    cells : callable
        `cells(words)` is a context that gives a function of cells done and all cells.
    """

    say: Callable[[str, str], None] = lambda step, sentence: None
    track: Callable[[Sequence[Any], str], Iterable[Any]] = lambda items, words: items
    cells: Callable[[str], AbstractContextManager[Any]] = lambda words: nullcontext(None)


@dataclass(frozen=True)
class Published:
    """What was published.

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


def planned(recipe: Recipe, cohort: Cohort, watcher: Watcher) -> ReleasePlan:
    """The first two steps: what is in the input, and what will be done with it."""
    chosen = mechanism_named(recipe.mechanism)
    check_keep(recipe.choices, channels_of(recipe.choices, chosen.kind), cohort.people)
    found = inventory(
        recipe.source,
        people=cohort.people,
        progress=lambda files: watcher.track(files, "Inventory"),
    ).keeping(recipe.choices.keep)
    kinds = Counter(f.kind for f in found.findings)
    shown = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    watcher.say("inventory", f"{found.sentence()} {shown}".strip())
    looks = look_at(cohort, True, lambda numbers: watcher.track(numbers, "Looking at recordings"))
    plan = plan_of(cohort, looks, chosen, recipe.choices, recipe.battery)
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
    writer: Callable[[Publication], list[PartSummary]] | None = None,
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
    writer : callable, optional
        Writes a publication of recordings; left out, this process does.
    """
    told = Watcher() if watcher is None else watcher
    free(out)
    if recipe.choices.key_file is not None:
        check_key_file(recipe.choices.key_file, out)
    plan = planned(recipe, cohort, told)
    recipe = with_choices(
        recipe,
        rate_hz=plan.alignment.rate_hz,
        durations=plan.alignment.lengths_s or recipe.choices.durations,
    )
    told.say("scrub", "only gaze goes on; nothing else of the files is copied.")
    told.say("align", _aligned(plan, recipe))
    chosen = mechanism_named(recipe.mechanism)
    attack = partial(_attack, recipe, plan, chosen, told)
    if chosen.kind in ("stream", "cohort"):
        published = _recordings(recipe, plan, chosen, out, told, seed, signing_key, writer, attack)
    else:
        published = _file(recipe, plan, chosen, out, told, seed, signing_key, attack)
    beside = out.with_name(out.name + ".publish.toml")
    beside.write_text(recipe.text(inside=False), encoding="utf-8", newline="\n")
    told.say("certify", f"{out}/PRIVACY.md; the choices are in {beside}")
    return published


def _aligned(plan: ReleasePlan, recipe: Recipe) -> str:
    alignment, keep = plan.alignment, recipe.choices.keep
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


def _attack(
    recipe: Recipe, plan: ReleasePlan, chosen: Mechanism[Any], told: Watcher
) -> dict[str, Any]:
    """The attack step; called when everything is written."""
    utilities = USUAL_UTILITIES if recipe.utilities is None else recipe.utilities
    with told.cells("Attacking") as progress:
        found = measure(
            aligned(plan.cohort, plan.alignment),
            chosen,
            recipe.battery,
            utilities,
            recipe.repetitions,
            recipe.table,
            progress,
        )
    for sentence in found["said"]:
        told.say("attack", sentence)
    return found


def _recordings(
    recipe: Recipe,
    plan: ReleasePlan,
    chosen: Mechanism[Any],
    out: Path,
    told: Watcher,
    seed: int | None,
    signing_key: SigningKey | None,
    writer: Callable[[Publication], list[PartSummary]] | None,
    attack: Callable[[], dict[str, Any]],
) -> Published:
    publication = protected(
        plan.cohort, chosen, recipe.choices, seed, plan.looks, recipe.format or ""
    )
    measured: dict[str, Any] = {}

    def after() -> Mapping[str, Any]:
        told.say("protect", f"{len(publication.parts)} recordings by {chosen.name}.")
        if recipe.battery != "none" or recipe.utilities:
            measured.update(attack())
        else:
            told.say("attack", "nobody attacked: it was asked so.")
        return measured

    publication = replace(publication, measure=after, texts={RECIPE_NAME: recipe.text(inside=True)})

    def each(parts: Sequence[Part]) -> Iterable[Part]:
        return told.track(parts, "Protecting")

    if writer is not None:
        summaries = writer(publication)
    else:
        summaries = write_publication(publication, out, each, signing_key=signing_key)
    for note in publication.notes:
        told.say("protect", note)
    return Published(out, publication.description(summaries, measured), measured)


def _file(
    recipe: Recipe,
    plan: ReleasePlan,
    chosen: Mechanism[Any],
    out: Path,
    told: Watcher,
    seed: int | None,
    signing_key: SigningKey | None,
    attack: Callable[[], dict[str, Any]],
) -> Published:
    """A release of maps or of a feature table: one file in a certified folder."""
    data: Any = aligned(plan.cohort, plan.alignment)
    if chosen.kind == "table":
        data = event_features(data) if recipe.table == "events" else window_features(data)
    release = protect(data, chosen, seed)
    write, names, description = described_file(release, recipe.choices, seed)
    noun = "maps" if chosen.kind == "map" else "features"
    with staged(out) as folder:
        write(folder / f"{noun}.parquet")
        (folder / RECIPE_NAME).write_text(recipe.text(inside=True), encoding="utf-8", newline="\n")
        told.say("protect", f"{len(release.data)} {noun} by {chosen.name}.")
        measured = attack() if recipe.battery != "none" else {}
        description = replace(
            description, attack=measured.get("attack"), utility=measured.get("utility")
        )
        write_certificate(folder, description, signing_key)
    if recipe.choices.key_file is not None:
        write_key(recipe.choices.key_file, names)
    return Published(out, description, measured)
