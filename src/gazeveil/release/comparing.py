"""Several protections of the same recordings side by side, published into a scratch folder that
nobody keeps: nothing is written, and no ledger is charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gazeveil.errors import GazeveilError
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.publication.plain_words import found_in_words
from gazeveil.release.publishing import Watcher, publish
from gazeveil.release.recipe import Recipe, preset


def compare(
    recipe: Recipe, presets: Sequence[str], cohort: Cohort, watcher: Watcher
) -> list[dict[str, Any]]:
    """What each preset gives, with the other choices of a recipe: its name, what it promises, who
    was recognised and which analyses still work, or why it cannot be done.
    """
    mechanisms = {name: preset(name).mechanism for name in presets}
    rows: list[dict[str, Any]] = []
    with TemporaryDirectory(prefix="gazeveil-compare-") as scratch:
        for name, mechanism in mechanisms.items():
            watcher.say("compare", f"{name}: {mechanism}")
            # What was asked once is answered, and the steps of a scratch release are nobody's.
            quiet = replace(watcher, say=lambda step, sentence: None)
            tried = replace(recipe, mechanism=mechanism)
            try:
                done = publish(tried, cohort, Path(scratch) / name, quiet)
            except GazeveilError as error:
                rows.append({"preset": name, "refused": str(error)})
                continue
            attack, utility = (done.measured.get(n) for n in ("attack", "utility"))
            promise = done.description.guarantee
            rows.append(
                {
                    "preset": name,
                    "promise": f"{promise.definition}, {promise.status}",
                    "recognised": "not attacked" if attack is None else found_in_words(attack),
                    "attack": attack,
                    "analyses": [] if utility is None else utility["analyses"],
                }
            )
            watcher = replace(watcher, ask=lambda questions: None)
    return rows
