"""The summary at the top, in plain language: what an attacker gets without protection, with each
release, and who would have missed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gazeveil.evaluation.report.findings import Difference, Findings, Rate, ReleaseFindings
from gazeveil.evaluation.report.labels import (
    attack_label,
    by_guessing,
    interval,
    mechanism_label,
    percent,
    points,
    probability,
)
from gazeveil.pages import capital

#: With more releases than this the summary shows one setting of each mechanism.
MOST_CARDS = 12


#: What all figures of recognition have in common, said once.
FOOTNOTE = (
    "The attacker of each split is the one who does best on the other splits. Intervals are 95 %"
    " over people. p is how often the best of all attackers does as well where names are dealt anew"
    " over its answers (of pieces: Student over people, times the attackers); up to 0.05 people"
    " count as recognised. An attacker who fails proves nothing: a stronger one may come."
)


def baseline_sentence(findings: Findings) -> str:
    """Re-identification without protection."""
    release = findings.baseline
    if release is None or release.shown is None:
        return (
            "What an attacker gets without protection was not measured, so the figures below have"
            " nothing to be compared with."
        )
    # One sitting and one calibration make people alike to themselves.
    sitting = " in the same sitting" if findings.study.get("sessions") == 1 else ""
    text = (
        "Without protection an attacker who has seen these people look at other things"
        f"{sitting} recognises {_how_many(release.shown)}."
    )
    if release.recognised or release.undecided:
        return text
    return (
        f"{text} That is no better than chance: these recordings cannot show what a mechanism"
        " protects."
    )


def verdict(release: ReleaseFindings) -> str:
    """Result of the strongest attacker on one release."""
    shown = release.shown
    if shown is None:
        return f"{capital(release.label)}: nobody attacked it."
    under = "Without protection" if release.baseline else f"With {release.label}"
    text = f"{under} the {release.strongest} recognises {_how_many(shown)}{_verdict(release)}."
    return f"{text} {promised_bound(release) if release.recognised else ''}".rstrip()


def _verdict(release: ReleaseFindings) -> str:
    """Whether that is better than chance, to follow a figure."""
    if release.undecided:
        return "; one repetition gives no verdict"
    if release.recognised:
        return ""
    people = 0 if release.shown is None else release.shown.n
    if release.fewest is None:
        return ": no better than chance"
    if release.fewest > people:
        return "; so few people cannot show whether that is better than chance"
    few = f"with {people} people fewer than {release.fewest} cannot be told from chance"
    return f": no better than chance ({few})"


def measured(release: ReleaseFindings) -> str:
    """What was measured on one release, to follow "Measured:"; it says nothing of the promise."""
    shown, worst = release.shown, release.worst
    if shown is None or worst is None:
        return "nobody attacked it."
    return (
        f"the {release.strongest} recognised {_how_many(shown)}{_verdict(release)}. Best of all:"
        f" {percent(worst.value)} ({attack_label(worst.attack)}, {worst.scenario})."
        + (
            f" Naming everybody at once, each once: {percent(worst.matched)}."
            if math.isfinite(worst.matched)
            else ""
        )
    )


def result(release: ReleaseFindings) -> str:
    """The line of result of a card."""
    return "" if release.shown is None else f"{_figures(release.shown)}{_verdict(release)}."


def promise(release: ReleaseFindings) -> str:
    """The plain promise of one release, to follow "Promise:"."""
    about = release.guarantee
    if not about or about.get("definition") == "none":
        return "none."
    return about.get("plain", "see below.")


def promised_bound(release: ReleaseFindings) -> str:
    """What a promise of k-anonymity allows, beside what was found."""
    worst, allowed = release.shown, release.allowed
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
    if not release.missed_by_rbfn or release.rbfn is None:
        return ""
    return (
        f"The RBF network alone recognises {release.rbfn.people} and would have called this safe."
    )


def called_safe(findings: Findings) -> str:
    """How many releases the papers' RBF network alone would have called safe; empty where there is
    none.
    """
    compared = [r for r in findings.protected if r.worst is not None and r.rbfn is not None]
    missed = sum(r.missed_by_rbfn for r in compared)
    if not missed:
        return ""
    return (
        "The RBF network alone, the attacker of the papers, would have called"
        f" {missed} of {_releases(compared)} safe where the {findings.strongest}"
        " recognises people."
    )


def leading_example(findings: Findings) -> str:
    """One release to begin with: of those the RBF network alone would have passed the one that
    leaks most; else the one that leaks most.
    """
    protected = [r for r in findings.protected if r.worst is not None]
    chosen = max(
        [r for r in protected if r.missed_by_rbfn] or protected,
        key=lambda r: r.shown.value if r.shown is not None else 0.0,
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
    broken = [r for r in protected if r.recognised]
    unknown = [r for r in protected if r.undecided]
    held = [r for r in protected if r not in broken and r not in unknown]
    if unknown:
        sentences.append(
            f"One repetition gives no verdict on {len(unknown)} of {_releases(protected)}:"
            f" {_listed(unknown)}."
        )
    if held:
        sentences.append(
            f"Attackers{battery} do no better than chance on {len(held)} of"
            f" {_releases(protected)}: {_listed(held)}."
        )
    if broken:
        sentences.append(
            f"People are still recognised in {len(broken)} of {_releases(protected)}."
            f" {capital(_listed(broken, counts=True))}."
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
        (min(g, key=lambda r: r.shown.value if r.shown is not None else 1.0), len(g))
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
    return f"{rate.people} ({_figures(rate)})"


def _figures(rate: Rate) -> str:
    """A rate with its confidence interval, the chance level and p."""
    between = interval(rate.low, rate.high)
    figures = [percent(rate.value) + (f", 95 % CI {between}" if between else "")]
    figures.append(f"chance {by_guessing(rate.chance, rate.n)} of {rate.n}")
    if math.isfinite(rate.p_value):
        p = probability(rate.p_value)
        figures.append(f"p {p}" if p.startswith("<") else f"p = {p}")
    return "; ".join(figures)


def _listed(releases: Sequence[ReleaseFindings], *, counts: bool = False) -> str:
    """Releases by name; of many, each mechanism once with the number of its settings."""
    if len(releases) <= 6:
        return "; ".join(
            r.label + (f": {r.shown.people}" if counts and r.shown is not None else "")
            for r in releases
        )
    groups: dict[str, list[ReleaseFindings]] = {}
    for r in releases:
        groups.setdefault(mechanism_label(r.key[0], r.key[1], ""), []).append(r)
    phrases = []
    for name, group in groups.items():
        worst = [r.shown for r in group if r.shown is not None]
        few, many = min(r.found for r in worst), max(r.found for r in worst)
        between = f": {few} to {many} of {worst[0].n}" if few < many else f": {worst[0].people}"
        phrases.append(
            (f"{name} in {len(group)} settings" if len(group) > 1 else group[0].label)
            + (between if counts else "")
        )
    return "; ".join(phrases)


def _releases(releases: Sequence[ReleaseFindings]) -> str:
    return f"{len(releases)} release{'s' * (len(releases) != 1)}"
