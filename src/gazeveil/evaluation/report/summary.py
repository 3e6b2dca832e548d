"""The summary at the top, in plain language: what an attacker gets without protection, with each
release, and who would have missed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gazeveil.evaluation.report.findings import Difference, Findings, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import (
    DEFINITIONS,
    SCENARIOS,
    attack_label,
    by_guessing,
    interval,
    mechanism_label,
    percent,
    points,
)

#: With more releases than this the summary shows one setting of each mechanism.
MOST_CARDS = 12


def baseline_sentence(findings: Findings) -> str:
    """What an attacker gets without protection."""
    release = findings.baseline
    if release is None or release.worst is None:
        return (
            "What an attacker gets without protection was not measured, so the figures below have"
            " nothing to be compared with."
        )
    worst = release.worst
    seen = "Without protection an attacker who has seen these people look at other things"
    text = (
        f"{seen} recognises {worst.people}; guessing would give"
        f" {by_guessing(worst.chance, worst.n)}."
    )
    return (
        text
        if worst.above_chance
        else text
        + " That is not measurably better than guessing: these recordings cannot show what a"
        " mechanism protects."
    )


def verdict(release: ReleaseFindings) -> str:
    """What the strongest attacker gets of one release."""
    worst = release.worst
    if worst is None:
        return f"{_capital(release.label)}: nobody attacked it."
    who = (
        f"the {release.strongest}, {attack_label(worst.attack)}, who"
        f" {SCENARIOS.get(worst.scenario, worst.scenario)},"
    )
    if release.baseline:
        return f"Without protection {who} recognises {_how_many(worst)}."
    if worst.above_chance:
        return f"With {release.label} {who} still recognises {_how_many(worst)}." + (
            f" {promised_bound(release)}" if promised_bound(release) else ""
        )
    if worst.too_few:
        return (
            f"With {release.label} {who} recognises {_how_many(worst)}. So few people cannot show"
            " whether that is better than guessing."
        )
    return (
        f"With {release.label} no attacker tried does measurably better than guessing: {who}"
        f" recognises {_how_many(worst)}."
    )


def measured(release: ReleaseFindings) -> str:
    """What was measured on one release, to follow "Measured:"; it says nothing of the promise."""
    worst = release.worst
    if worst is None:
        return "nobody attacked it."
    between = interval(worst.low, worst.high)
    verdict = "people are recognised"
    if not release.recognised:
        held = "not measurably better than guessing"
        verdict = "too few people to tell" if worst.too_few else held
    return (
        f"{verdict}. The {release.strongest}, {attack_label(worst.attack)} in {worst.scenario},"
        f" recognised {percent(worst.value)}{f' [{between}]' if between else ''}, guessing"
        f" {percent(worst.chance)}."
        + (
            f" Naming everybody at once, each once: {percent(worst.matched)}."
            if math.isfinite(worst.matched)
            else ""
        )
    )


def choice_note(release: ReleaseFindings) -> str:
    """What is left of the strongest attacker's rate where it is chosen on other repetitions; empty
    where there was no choice.
    """
    compared = release.comparison
    if compared is None or release.tried < 2 or not math.isfinite(compared.chosen):
        return ""
    between = interval(compared.chosen_low, compared.chosen_high)
    return (
        "That is an upper envelope, chosen by these rates. Chosen on the other repetitions:"
        f" {percent(compared.chosen)} [{between}]."
    )


def promise(release: ReleaseFindings) -> str:
    """What one release promises, to follow "Promise:"; it says nothing of what was measured."""
    about = release.guarantee
    definition, unit = about.get("definition", ""), about.get("unit", "")
    if not about or definition == "none":
        return "none."
    definition = DEFINITIONS.get(definition, definition)
    of = "people" if unit == "user" else f"one {unit}"
    words = {
        "proved": f"{definition} of {of}, proved.",
        "claimed": f"{definition} of {of}, claimed and not proved.",
        "empirical": "rests on experiments, nothing is proved.",
        "refuted": f"{definition} of {of} was claimed, and is refuted.",
    }.get(about.get("status", ""), f"{definition} of {of}.")
    if release.recognised and about.get("status") == "proved":
        words += " It does not say that nobody is recognised."
    return words


def promised_bound(release: ReleaseFindings) -> str:
    """What a promise of k-anonymity allows, beside what was found."""
    worst, allowed = release.worst, release.allowed
    if worst is None or not allowed > 0:
        return ""
    text = (
        f"Its promise, one in {round(1 / allowed)}, allows {by_guessing(allowed, worst.n)} of"
        f" {worst.n}"
    )
    return (
        f"{text}; this is more, by an attacker who knows more than the released record."
        if worst.low > allowed
        else f"{text}."
    )


def rbfn_warning(release: ReleaseFindings) -> str:
    """What the papers' RBF network alone would have said, where it would have said something else;
    else nothing.
    """
    rbfn, worst = release.rbfn, release.worst
    if not release.missed_by_rbfn or rbfn is None or worst is None:
        return ""
    text = (
        f"The RBF network alone would have called this safe: it recognises {rbfn.people}, no better"
        f" than guessing, where the {release.strongest} recognises {worst.people}."
    )
    if not by_luck(release):
        return text
    return (
        f"{text} That may be the luck of the choice: chosen on the other repetitions, the attacker"
        " is not above guessing either."
    )


def by_luck(release: ReleaseFindings) -> bool:
    """Whether the choice of the strongest attacker alone may say that the network was wrong."""
    compared = release.comparison
    return (
        compared is not None and math.isfinite(compared.chosen) and not compared.chosen_called_safe
    )


def called_safe(findings: Findings) -> str:
    """How many releases the papers' RBF network alone would have called safe; empty where it was
    not among the attackers.
    """
    compared = [r for r in findings.protected if r.worst is not None and r.rbfn is not None]
    if not compared:
        return ""
    missed = sum(r.missed_by_rbfn for r in compared)
    chosen = [r.comparison.chosen_called_safe for r in compared if r.comparison is not None]
    several = any(r.comparison is not None and math.isfinite(r.comparison.chosen) for r in compared)
    return (
        "The RBF network alone, the attacker of the papers, would have called"
        f" {missed or 'none'} of {_releases(compared)} safe where the {findings.strongest}"
        " shows that people are recognised"
        + (
            f" ({sum(chosen) or 'none'} where that attacker is chosen on the other repetitions)."
            if several
            else "."
        )
    )


def leading_example(findings: Findings) -> str:
    """One release to begin with: of those the RBF network alone would have passed, and not by the
    luck of the choice, the one that leaks most; else the one that leaks most.
    """
    protected = [r for r in findings.protected if r.worst is not None]
    chosen = max(
        [r for r in protected if r.missed_by_rbfn and not by_luck(r)] or protected,
        key=lambda r: r.worst.value if r.worst is not None else 0.0,
        default=None,
    )
    return "" if chosen is None else " ".join(filter(None, (verdict(chosen), rbfn_warning(chosen))))


def overview(findings: Findings) -> list[str]:
    """The findings over all releases, one sentence each."""
    protected = [r for r in findings.protected if r.worst is not None]
    if not protected:
        return ["No protected release was attacked."]
    sentences = []
    battery = f" ({findings.battery})" if findings.battery else ""
    broken = [r for r in protected if r.worst is not None and r.worst.above_chance]
    unknown = [r for r in protected if r.worst is not None and r.worst.too_few]
    held = [r for r in protected if r not in broken and r not in unknown]
    if unknown:
        sentences.append(
            f"So few people cannot show whether attackers do better than guessing on {len(unknown)}"
            f" of {_releases(protected)}: {_listed(unknown)}."
        )
    if held:
        sentences.append(
            f"No attacker tried{battery} does measurably better than guessing on {len(held)} of"
            f" {_releases(protected)}: {_listed(held)}."
        )
    if broken:
        sentences.append(
            f"People are still recognised in {len(broken)} of {_releases(protected)}."
            f" {_capital(_listed(broken, counts=True))}."
        )
    missed = [r for r in protected if r.missed_by_rbfn]
    if missed:
        which = "It is" if len(missed) == 1 else "They are"
        sentences.append(f"{called_safe(findings)} {which}: {_listed(missed)}.")
    stronger = [d for d in findings.differences if d.low > 0]
    if stronger:
        most = max(stronger, key=lambda d: d.difference)
        sentences.append(
            f"An attacker who adapts gains: {attack_label(most.attack)} finds"
            f" {points(most.difference).lstrip('+')} points more people than the same attacker left"
            f" as it is ({most.release.label}; 95 % interval {points(most.low)} to"
            f" {points(most.high)})."
        )
    failures = findings.results.failures
    if failures:
        sentences.append(
            f"{len(failures)} of the planned figures could not be computed; they are listed under"
            " Failures."
        )
    return sentences


def cards(findings: Findings) -> list[tuple[ReleaseFindings, str]]:
    """The releases the summary shows, each with a note: all of them, or of each mechanism the
    setting that protects best.
    """
    attacked = list(findings.attacked)
    if len(attacked) <= MOST_CARDS:
        return [(r, "") for r in attacked]
    groups: dict[tuple[str, str, str], list[ReleaseFindings]] = {}
    for r in attacked:
        groups.setdefault((r.key[0], r.key[1], r.key[3]), []).append(r)
    best = [
        (min(g, key=lambda r: r.worst.value if r.worst is not None else 1.0), len(g))
        for g in groups.values()
    ]
    return [(r, f"the most protective of {n} settings" if n > 1 else "") for r, n in best]


def difference_verdict(d: Difference) -> str:
    """One adaptive attacker against its frozen self."""
    if not (d.low > 0 or d.high < 0):
        return "no difference shown"
    return "stronger" if d.difference > 0 else "weaker"


def headline(findings: Findings) -> tuple[str, ...]:
    """The whole summary as sentences, for a terminal."""
    sentences = [baseline_sentence(findings)]
    for release, note in cards(findings):
        if not release.baseline:
            sentences.append(
                " ".join(
                    filter(
                        None,
                        (
                            verdict(release),
                            f"(This is {note}.)" if note else "",
                            rbfn_warning(release),
                        ),
                    )
                )
            )
    return tuple(sentences)


def _how_many(rate: Rate) -> str:
    between = interval(rate.low, rate.high)
    return f"{rate.people} ({percent(rate.value)}{f', 95 % interval {between}' if between else ''})"


def _listed(releases: Sequence[ReleaseFindings], *, counts: bool = False) -> str:
    """Releases by name; of many, each mechanism once with the number of its settings."""
    if len(releases) <= 6:
        return "; ".join(
            r.label + (f": {r.worst.people}" if counts and r.worst is not None else "")
            for r in releases
        )
    groups: dict[str, list[ReleaseFindings]] = {}
    for r in releases:
        groups.setdefault(mechanism_label(r.key[0], r.key[1], ""), []).append(r)
    phrases = []
    for name, group in groups.items():
        worst = [r.worst for r in group if r.worst is not None]
        few, many = min(r.found for r in worst), max(r.found for r in worst)
        between = f": {few} to {many} of {worst[0].n}" if few < many else f": {worst[0].people}"
        phrases.append(
            (f"{name} in {len(group)} settings" if len(group) > 1 else group[0].label)
            + (between if counts else "")
        )
    return "; ".join(phrases)


def _releases(releases: Sequence[ReleaseFindings]) -> str:
    return f"{len(releases)} release{'s' * (len(releases) != 1)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
