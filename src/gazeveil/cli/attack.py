"""`gazeveil attack`: what attackers get from a protected copy that is already there: names of
people, attributes, membership, links between records, places.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazeveil import checks
from gazeveil.cli.arguments import (
    AttackOption,
    BatteryOption,
    FormatOption,
    JsonOption,
    ScreenOption,
    SetOption,
    WorkersOption,
    attackers,
    bar,
    console,
    print_table,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.evaluate import figures, print_rates
from gazeveil.cli.inspect import ONE_FILE, certificate_of
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gazeveil.attacks.result import InferenceResult
    from gazeveil.evaluation.results import Results
    from gazeveil.gaze.cohort import Cohort

HELP = """\
Kinds: identify (the default; also the copy against itself), attributes, membership, record-linkage,
demographics, relinking (of pieces), stimulus-risk (which stimulus identifies most; give the raw
recordings twice to ask about themselves), each as `kind:parameter=value,...`.

The strong battery attacks unless somebody else is named.

Example: `gazeveil attack recordings/ protected/ --key-file key.json`

Example: `gazeveil attack recordings/ protected/ --attacks quick -a lda`

Example: `gazeveil attack recordings/ protected/ --kind attributes:attribute=gender`"""

#: What the attacker learns from and is asked about, in the order of the tables.
_SCENARIOS = {
    "raw/raw": "learns from raw recordings, is asked about other raw ones",
    "raw/private": "learns from raw recordings, is asked about the copy",
    "release/release": "learns from one part of the copy, is asked about the rest",
}


def command(
    raw: Annotated[Path, typer.Argument(help="Raw recordings, a file or a folder.")],
    protected: Annotated[
        Path, typer.Argument(help="The protected copy; with pseudonyms, give its --key-file.")
    ],
    attacks: AttackOption = None,
    battery: BatteryOption = None,
    kind: Annotated[
        str, typer.Option("--kind", "-k", metavar="KIND:...", help="What the attacker wants.")
    ] = "identify",
    repetitions: Annotated[
        int, typer.Option("--repetitions", "-r", help="Random splits of the stimuli.")
    ] = 10,
    train: Annotated[
        float, typer.Option("--train", help="Share of the stimuli to learn from.")
    ] = 0.75,
    split: Annotated[
        str, typer.Option("--split", help="stimulus, halves or session.")
    ] = "stimulus",
    seed: Annotated[int, typer.Option("--seed", help="Of splits and attackers.")] = 0,
    format_name: FormatOption = None,
    settings: SetOption = None,
    screen: ScreenOption = None,
    copy_format: Annotated[
        str | None, typer.Option("--copy-format", help="Format of the copy, if it cannot be found.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="The key of the copy's pseudonyms: attackers never see it, scores need it.",
        ),
    ] = None,
    workers: WorkersOption = None,
    json_file: JsonOption = None,
) -> None:
    """Attack a copy."""
    from gazeveil.attacks.registry import named as battery_named
    from gazeveil.attacks.registry import unfold
    from gazeveil.evaluation.run import doubt_about_names, run, study_of_copy

    own = read_cohort(raw, format_name, settings, screen)
    certificate = certificate_of(protected) or {}
    copied = (protected, certificate, copy_format, key_file, own)
    cohorts = own, own if protected == raw else _copy(*copied)
    if kind != "identify":
        if attacks or battery:
            raise ParameterError(
                "--attack and --attacks name attackers of the kind identify. Leave them out, or"
                " leave --kind out.",
                name="attack",
                got=attacks or battery,
            )
        _infer(kind, *cohorts, seed, json_file)
        return
    chosen = attackers(attacks, battery)
    study = study_of_copy(
        *cohorts,
        chosen,
        repetitions=repetitions,
        train=train,
        split=split,
        seed=seed,
        independent=_own_noise(certificate),
    )
    with bar("Attacking") as progress:
        results = run(study, None, workers, progress)
    if results.frame.filter(metric="identification_rate", mechanism="copy").height == 0:
        raise DataError(
            " ".join(
                ["Nobody could attack the copy.", *(f["sentence"] for f in results.failures[:1])]
            )
        )
    doubt = doubt_about_names(results)
    _print_rates(results, protected.name, repetitions, doubt)
    tried = {str(a) for a in study.attacks}
    made = [t for t in unfold(battery_named(chosen)) if t not in tried]
    if made:
        say(
            f"Not tried: {', '.join(map(str, made))}. They make releases of their own, and how the"
            " copy was made is not known; `gazeveil evaluate` tries them with the mechanism."
        )
    for sentence in dict.fromkeys(f["sentence"] for f in results.failures):
        say(f"Not computed: {sentence}")
    write_json(json_file, {**figures(results), "doubt": doubt or None})


def _copy(
    path: Path,
    certificate: Mapping[str, Any],
    format_name: str | None,
    key_file: Path | None,
    raw: Cohort,
) -> Cohort:
    """The copy, under the raw names where there is a key."""
    from gazeveil.privacy.publication.names import raw_names, read_key

    if key_file is not None:
        copy = read_cohort(path, format_name, None, None)
        return raw_names(copy, read_key(key_file), raw.people)
    contents, alignment = (
        c if isinstance(c := certificate.get(name), dict) else {}
        for name in ("contents", "alignment")
    )
    if "pieces" in contents:
        problem = (
            f"{path} holds pieces, each under a name of its own, and nobody keeps whose they are."
            " `gazeveil publish` attacks such a release while it is made; its PRIVACY.md has the"
            " figures."
        )
    elif contents.get("format") in ONE_FILE:
        problem = (
            f"{path} holds no recordings but a release of the kind '{contents['format']}'. Attack"
            " the mechanism on the recordings: `gazeveil evaluate`."
        )
    elif alignment.get("pseudonyms") == "random":
        problem = (
            f"The people in {path} have pseudonyms, and without their key nobody can tell whether"
            " an attacker is right. Give it: --key-file FILE, which `gazeveil protect` and"
            " `gazeveil publish` write where they are asked to."
        )
    else:
        return read_cohort(path, format_name, None, None)
    raise ParameterError(problem, name="PROTECTED", got=str(path))


def _own_noise(certificate: Mapping[str, Any]) -> bool:
    """Whether a certificate names a mechanism whose recordings have noise of their own."""
    from gazeveil.privacy.registry import get, mechanisms

    part = certificate.get("mechanism")
    name = part.get("name") if isinstance(part, dict) else None
    return name in mechanisms() and get(str(name)).noise_unit == "recording"


def _print_rates(results: Results, name: str, repetitions: int, doubt: str) -> None:
    """Print every attacker's rates, the strongest one in words (or why they mean nothing), and
    what to read with care.
    """
    from gazeveil.evaluation.report.findings import Findings
    from gazeveil.evaluation.report.summary import FOOTNOTE, measured

    rates = results.frame.filter(metric="identification_rate")
    rows = sorted(rates.iter_rows(named=True), key=lambda r: (-r["value"], r["attack"]))
    for scenario, words in _SCENARIOS.items():
        here = [row for row in rows if row["scenario"] == scenario]
        if not here:
            continue
        title = f"{name}: people recognised, mean of {repetitions} splits; the attacker {words}"
        print_rates(title, ("attacker",), [((row["attack"],), row) for row in here])
    if doubt:
        say(doubt)
    for release in () if doubt else Findings(results).protected:
        say(f"Measured: {measured(release)}")
    say(FOOTNOTE)
    if "release/release" in rates["scenario"].to_list():
        say(
            "The copy against itself is one release split afterwards: what its noise has in common"
            " in both parts can identify people too. With the mechanism at hand, `gazeveil"
            " evaluate` compares two independent releases."
        )


def _infer(text: str, raw: Cohort, protected: Cohort, seed: int, json_file: Path | None) -> None:
    """Run an inference attack and print what it found."""
    from gazeveil.attacks.infer import KINDS
    from gazeveil.features.recording_set import RecordingSet
    from gazeveil.registry import build, parse

    name, parameters = parse(text, "attack")
    checks.one_of("attack", "kind", name, ("identify", *KINDS))
    attack = build("attack", KINDS[name], parameters)
    known = RecordingSet(raw, people=raw.people)
    asked = known if protected is raw else RecordingSet(protected, people=protected.people)
    with console().status(f"Attacking: {attack.summary}"):
        outcome = attack.run(known, asked, seed)
    rows = [
        (
            r.metric,
            f"{r.value:.3f}",
            "" if math.isnan(r.low) else f"{r.low:.3f} to {r.high:.3f}",
            "" if r.chance is None or math.isnan(r.chance) else f"{r.chance:.3f}",
            str(r.n),
            r.protocol,
        )
        for r in outcome.results
    ]
    heads = ("metric", "value", "95 % interval", "chance", "n", "how")
    print_table(attack.summary, heads, rows)
    if outcome.kind == "stimulus-risk":
        _print_stimuli(outcome)
    write_json(json_file, outcome.to_dict())


#: Rows that are printed at most; all of them are in the JSON file.
MOST = 40


def _print_stimuli(outcome: InferenceResult) -> None:
    """Print one row per stimulus, the most identifying first, and how far to read them."""
    stimuli: Any = outcome.details["stimuli"]
    print_table(
        "People found from one stimulus alone. p: apart from the mean, adjusted for all;"
        " control: names dealt anew",
        ("stimulus", "s", "found", "95 %", "chance", "p", "control"),
        [
            (
                row["stimulus"],
                _text(row["seconds"], "{:.0f}"),
                _text(row["across"], "{:.0%}"),
                f"{_text(row['across_low'], '{:.0%}')} to {_text(row['across_high'], '{:.0%}')}",
                _text(row["chance"], "{:.0%}"),
                _text(row["p_value"], "{:.2g}"),
                _text(row["control"], "{:.0%}"),
            )
            for row in stimuli[:MOST]
        ],
        1,
    )
    counted = outcome.result("stimuli_apart")
    sentences = [f"{counted.value:.0f} of {counted.n} stimuli differ from the mean."]
    least: Any = outcome.details["least_difference"]
    if least is not None:
        sentences.append(
            f"A difference below {100 * least:.0f} points cannot be told with these people."
        )
    if len(stimuli) > MOST:
        sentences.append(
            f"The {len(stimuli) - MOST} that identify least are not shown: --json has them."
        )
    left: Any = outcome.details["left_out"]
    if left:
        sentences.append(f"Left out, because too few people saw them: {len(left)}.")
    say(" ".join(sentences))


def _text(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
