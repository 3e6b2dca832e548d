"""`gazeveil attack`: what attackers get from a protected copy that is already there: names of
people, attributes, membership, links between records, places.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

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
    console,
    read_cohort,
    say,
    write_json,
)
from gazeveil.cli.parts import figures, rate_table, rate_words
from gazeveil.cli.progress import bar
from gazeveil.errors import DataError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gazeveil.attacks.infer.kinds import InferenceResult
    from gazeveil.evaluation.results import Results
    from gazeveil.gaze.cohort import Cohort

HELP = """\
Kinds: identify (the default; also the copy against itself), attributes, membership, record-linkage,
demographics, reconstruction, known-looks and relinking (of pieces), stimulus-risk (which stimulus
identifies most; give the raw recordings twice to ask about themselves), each as
`kind:parameter=value,...`.

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
    from gazeveil.evaluation.api import doubt_about_names, study_of_copy
    from gazeveil.evaluation.run import run

    own = read_cohort(raw, format_name, settings, screen)
    cohorts = own, own if protected == raw else _copy(protected, copy_format, key_file, own)
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
        independent=_own_noise(protected),
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


def _copy(path: Path, format_name: str | None, key_file: Path | None, raw: Cohort) -> Cohort:
    """The copy, under the raw names where there is a key."""
    from gazeveil.privacy.publication.certificate import has_certificate, read_certificate
    from gazeveil.privacy.publication.names import raw_names, read_key

    if key_file is None and has_certificate(path):
        _refuse_nobody(path, read_certificate(path))
    copy = read_cohort(path, format_name, None, None)
    if key_file is not None:
        return raw_names(copy, read_key(key_file), raw.people)
    if has_certificate(path):
        alignment = read_certificate(path).get("alignment")
        if isinstance(alignment, dict) and alignment.get("pseudonyms") == "random":
            raise ParameterError(
                f"The people in {path} have pseudonyms, and without their key nobody can tell"
                " whether an attacker is right. Give it: --key-file FILE, which `gazeveil protect`"
                " and `gazeveil publish` write where they are asked to.",
                name="--key-file",
                got=None,
            )
    return copy


def _own_noise(path: Path) -> bool:
    """Whether a certificate names a mechanism whose recordings have noise of their own."""
    from gazeveil.privacy.publication.certificate import has_certificate, read_certificate
    from gazeveil.privacy.registry import get, mechanisms

    part = read_certificate(path).get("mechanism") if has_certificate(path) else None
    name = part.get("name") if isinstance(part, dict) else None
    return name in mechanisms() and get(str(name)).noise_unit == "recording"


def _refuse_nobody(path: Path, certificate: Mapping[str, Any]) -> None:
    """Refuse a release without participants to recognise: no key of it exists."""
    from gazeveil.cli.inspect import ONE_FILE

    contents = certificate.get("contents")
    held = contents if isinstance(contents, dict) else {}
    if "pieces" in held:
        raise ParameterError(
            f"{path} holds pieces, each under a name of its own, and nobody keeps whose they are."
            " `gazeveil publish` attacks such a release while it is made; its PRIVACY.md has the"
            " figures.",
            name="PROTECTED",
            got=str(path),
        )
    if held.get("format") in ONE_FILE:
        raise ParameterError(
            f"{path} holds no recordings but a release of the kind '{held['format']}'. Attack the"
            " mechanism on the recordings: `gazeveil evaluate`.",
            name="PROTECTED",
            got=str(path),
        )


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
        table = rate_table(title, "attacker")
        for row in here:
            table.add_row(row["attack"], *rate_words(row))
        console().print(table)
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
    from gazeveil.attacks.infer.kinds import KINDS
    from gazeveil.features.recording_set import RecordingSet
    from gazeveil.registry import build, parse

    name, parameters = parse(text, "attack")
    checks.one_of("attack", "kind", name, ("identify", *KINDS))
    attack = build("attack", KINDS[name], parameters)
    known = RecordingSet(raw, people=raw.people)
    asked = known if protected is raw else RecordingSet(protected, people=protected.people)
    with console().status(f"Attacking: {attack.summary}"):
        outcome = attack.run(known, asked, seed)
    table = Table("metric", "value", "95 % interval", "chance", "n", "how", title=attack.summary)
    for result in outcome.results:
        table.add_row(
            result.metric,
            f"{result.value:.3f}",
            "" if math.isnan(result.low) else f"{result.low:.3f} to {result.high:.3f}",
            "" if result.chance is None or math.isnan(result.chance) else f"{result.chance:.3f}",
            str(result.n),
            result.protocol,
        )
    console().print(table)
    if outcome.kind == "stimulus-risk":
        stimulus_table(outcome)
    write_json(json_file, outcome.to_dict())


#: Rows that are printed at most; all of them are in the JSON file.
MOST = 40


def stimulus_table(outcome: InferenceResult) -> None:
    """Print one row per stimulus, the most identifying first, and how far to read them."""
    rows: Any = outcome.details["stimuli"]
    table = Table(
        title="People found from one stimulus alone. Expected: with other people; p: apart from the"
        " mean, adjusted for all; share: of features that is the person's, without an attacker",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("stimulus", overflow="fold")
    for heading in ("s", "found", "95 %", "chance", "expected", "p", "within", "share"):
        table.add_column(heading, no_wrap=True, justify="right")
    for row in rows[:MOST]:
        table.add_row(
            row["stimulus"],
            _text(row["seconds"], "{:.0f}"),
            _text(row["across"], "{:.0%}"),
            f"{_text(row['across_low'], '{:.0%}')} to {_text(row['across_high'], '{:.0%}')}",
            _text(row["chance"], "{:.0%}"),
            _text(row["expected"], "{:.0%}"),
            _text(row["p_value"], "{:.2g}"),
            _text(row["within"], "{:.0%}"),
            _text(row["person_share"], "{:.2f}"),
        )
    console().print(table)
    say(_summary(outcome, rows))


def _summary(outcome: InferenceResult, rows: list[dict[str, Any]]) -> str:
    counted = next(r for r in outcome.results if r.metric == "stimuli_apart")
    least: Any = outcome.details["least_difference"]
    said = [f"{counted.value:.0f} of {counted.n} stimuli differ from the mean"]
    if least is not None:
        said.append(f"a difference below {100 * least:.0f} points cannot be told with these people")
    sentence = "; ".join(said) + "."
    if len(rows) > MOST:
        sentence += f" The {len(rows) - MOST} that identify least are not shown: --json has them."
    left: Any = outcome.details["left_out"]
    if left:
        sentence += f" Left out, because too few people saw them: {len(left)}."
    return sentence


def _text(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
