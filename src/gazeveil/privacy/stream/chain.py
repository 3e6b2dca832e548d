"""`chain`: mechanisms one after the other, with the account of what they promise together.

The rules, from the first stage to the last:

1. What comes after the first stage that promises something is post-processing and costs nothing,
   noise included.
2. A stage before it changes what "moved by at most r" means: by how much says
   :meth:`StreamMechanism.propagate_move`, and the map of the noise is asked for that
   (:class:`BehindMap`). Where there is no such bound (a filter spreads one sample over many) the
   chain promises nothing. What the noise promises besides (`also`) speaks of what it is given, and
   is left out.
3. A chain without a promising stage promises nothing.

Streams that are made side by side from the same gaze add up
(:func:`gazeveil.privacy.composition.compose` of their promises).

On the command line stages are written `chain:stages=gaussian(sigma_deg=5;w=30)+temporal(K=3)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.promise.loss import Change, Loss, PromiseError
from gazeveil.privacy.promise.privacy_map import StreamMap
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Samples, Stage

_MOST_STAGES = 16
_ANY_RATE_HZ = 100.0


class Stages(tuple[StreamMechanism, ...]):
    """Mechanisms in order, printed as the command line writes them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "+".join(_written(m, m.parameters()) for m in self)


def _written(mechanism: StreamMechanism, parameters: Mapping[str, object]) -> str:
    pairs = [f"{k}={v}" for k, v in parameters.items() if v not in (None, "None")]
    return f"{mechanism.name}({';'.join([*pairs, f'reading={mechanism.reading}'])})"


def parse_stages(text: str) -> Stages:
    """Stages as the command line writes them.

    Examples
    --------
    >>> str(parse_stages("temporal(K=3)+spatial(L=64)"))
    'temporal(K=3;hold=False;reading=corrected)+spatial(L=64;steps=table;reading=corrected)'
    """
    from gazeveil.privacy.registry import mechanism

    made: list[Any] = [mechanism(stage) for stage in stage_texts(text)]
    return Stages(made)


def stage_texts(text: str) -> tuple[str, ...]:
    """Each stage as a mechanism is written alone; nothing is made of them.

    Examples
    --------
    >>> stage_texts("gaussian(sigma_deg=5;w=30)+temporal(K=3)")
    ('gaussian:sigma_deg=5,w=30', 'temporal:K=3')
    """
    stages = []
    for part in text.split("+"):
        name, bracket, rest = part.strip().partition("(")
        if bracket and not rest.endswith(")"):
            checks.refuse("chain", "stages", "written name(parameter=value;...)+name(...)", text)
        stages.append(f"{name}:{rest[:-1].replace(';', ',')}" if bracket else f"{name}:")
    return tuple(stages)


@dataclass(frozen=True)
class Chain(StreamMechanism):
    """Stream mechanisms one after the other.

    Parameters
    ----------
    stages : sequence of StreamMechanism, or str
        In the order samples pass them.

    Examples
    --------
    >>> Chain("gaussian(sigma_deg=10)+temporal(K=3)").promise(60.0, Sphere()).definition
    'rho-zcdp'
    """

    name: ClassVar[str] = "chain"
    label: ClassVar[str] = "chain"
    summary: ClassVar[str] = "Applies several stream mechanisms one after the other."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "streams",
        (
            ":stages=gaussian(sigma_deg=3)",
            ":stages=gaussian(sigma_deg=3)+smoothing(first=5;second=10)",
        ),
    )
    paper: ClassVar[str] = "Composition of stream mechanisms"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim("none", "user", "empirical", "what its stages promise together")
    }

    stages: Any

    def check(self) -> None:
        """Stages that fit together; the claim is theirs."""
        value = self.stages
        try:
            stages = parse_stages(value) if isinstance(value, str) else Stages(value)
        except TypeError:
            checks.refuse(self.name, "stages", "stream mechanisms, or their text", value)
        if not 1 <= len(stages) <= _MOST_STAGES:
            checks.refuse(self.name, "stages", f"1 to {_MOST_STAGES} stages", value)
        for stage in stages:
            if not isinstance(stage, StreamMechanism):
                checks.refuse(
                    self.name,
                    "stages",
                    "stream mechanisms",
                    stage,
                    "Mechanisms on tables and cohorts cannot run inside a stream.",
                )
            if not stage.causal:
                checks.refuse(
                    self.name,
                    "stages",
                    "mechanisms that run as samples come",
                    str(stage),
                    "This one needs whole recordings; use it alone.",
                )
            if (stage.losses, stage.duration_s, stage.clock_hz) != (None, None, None):
                checks.refuse(
                    self.name,
                    "stages",
                    "without losses, duration_s and clock_hz",
                    str(stage),
                    "Say them of the chain: it fills at the first stage that promises something.",
                )
        self.store("stages", stages)
        self.store("fills", stages[self._filling].fills)
        # What a file says changes numbers, not the claim, and areas in pixels say nothing before a
        # screen is known.
        promise = self._promise(_plain(stages), _ANY_RATE_HZ, Sphere())
        self.store(
            "claims",
            {"corrected": Claim(promise.definition, promise.unit, promise.status, promise.reason)},
        )

    def public_parameters(self) -> dict[str, str]:
        """With those of its stages."""
        stages = "+".join(_written(s, s.public_parameters()) for s in self.stages)
        return {**super().public_parameters(), "stages": stages}

    @property
    def _filling(self) -> int:
        """Number of the stage that fills losses: the first one that promises something, because
        before it a fill would spread a change; the first one where none does.
        """
        promises = (s.promise(_ANY_RATE_HZ, Sphere()) for s in _plain(self.stages))
        proved = (n for n, p in enumerate(promises) if p.losses and p.status == "proved")
        return next(proved, 0)

    @property
    def can_fill(self) -> bool:
        """Whether the stage that should can."""
        return self.stages[self._filling].can_fill

    @property
    def stride(self) -> int:
        """Product over the stages."""
        product = 1
        for stage in self.stages:
            product *= stage.stride
        return product

    @property
    def keeps_tracker_times(self) -> bool:
        """Times pass only where every stage passes them."""
        return all(stage.keeps_tracker_times for stage in self.stages)

    @property
    def hides_losses(self) -> bool:
        """Where the chain fills losses, or one of its stages does not show them."""
        return super().hides_losses or any(stage.hides_losses for stage in self.stages)

    def on_stimulus(self, stimulus: str) -> Chain:
        """With each stage as it runs there."""
        stages = Stages(stage.on_stimulus(stimulus) for stage in self.stages)
        same = all(a is b for a, b in zip(stages, self.stages, strict=True))
        return self if same else replace(self, stages=stages)

    def without_files(self, r_deg: Fraction = Fraction(1)) -> Chain:
        """With stages that open none."""
        stages = _plain(self.stages, r_deg)
        same = all(a is b for a, b in zip(stages, self.stages, strict=True))
        return self if same else replace(self, stages=stages)

    def propagate_move(self, w: int, r_deg: Fraction) -> tuple[int, Fraction] | None:
        """Through all stages."""
        change: tuple[int, Fraction] | None = (w, r_deg)
        for stage in self.stages:
            change = None if change is None else stage.propagate_move(*change)
        return change

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """By the rules of the module."""
        rate = checks.positive(self.name, "rate_hz", rate_hz)
        return self._promise(self.stages, rate, space)

    def _promise(self, stages: Stages, rate_hz: float, space: Space) -> Guarantee:
        inner = rate_hz
        for before, stage in enumerate(stages):
            mine = stage.promise(inner, space)
            if mine.definition != "none" and mine.status == "proved":
                return self._behind(stages[:before], mine, rate_hz, space)
            inner /= stage.stride
        left_out = tuple(
            dict.fromkeys(c for s in stages for c in s.promise(rate_hz, space).not_covered)
        )
        return no_promise(self.title, "none of its stages promises anything", left_out)

    def _behind(
        self, before: tuple[StreamMechanism, ...], mine: Guarantee, rate_hz: float, space: Space
    ) -> Guarantee:
        assert isinstance(mine.losses, StreamMap)
        if not before:
            return replace(
                mine, mechanism=self.title, reason=f"{mine.reason}; what follows is post-processing"
            )
        if any(stage.propagate_move(1, Fraction(1)) is None for stage in before):
            names = ", ".join(e.name for e in before)
            why = (
                f"a later stage promises something about what it is given, but how far {names}"
                " spreads a change is not bounded"
            )
            return no_promise(self.title, why)
        return replace(
            mine,
            # The promise is about the gaze that goes in: its change is what the user wrote, seen
            # through the stages before the noise.
            losses=BehindMap(rate_hz, space, Stages(before), mine.losses),
            **_about_moves(mine),
            also=(),
            mechanism=self.title,
            reason=(
                f"{mine.reason}, for the change that the stages before it let through; what follows"
                " is post-processing"
            ),
        )

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """The stages, each with randomness of its own and at the rate it is given."""
        made = []
        for number, each in enumerate(self.stages):
            fill = self.losses == "fill" and number == self._filling
            stage = replace(each, losses="fill") if fill else each
            made.append(stage.stage(rate_hz, space, streams, _StageBits(bits, number)))
            rate_hz /= stage.stride
        return _ChainStage(made)


def _about_moves(promise: Guarantee) -> dict[str, Any]:
    """The definition and change of a promise where stages before its own say how moves travel, and
    nothing about windows that are replaced: samples that move by as much as the window's beginning.
    """
    change = promise.change
    if change is None or change.start_deg is None:
        return {}
    moved = Change.window(change.samples, change.seconds, change.start_deg, change.metric)
    return {"definition": "epsilon-w-r-dp", "change": moved}


def _plain(stages: Stages, r_deg: Fraction = Fraction(1)) -> Stages:
    return Stages(stage.without_files(r_deg) for stage in stages)


class _StageBits(Bits):
    """The randomness of one stage."""

    def __init__(self, bits: Bits, number: int) -> None:
        super().__init__()
        self.bits, self.number = bits, number

    def sources(self, streams: int, *keys: str | int) -> list[Source]:
        """Sources that no other stage gets."""
        return self.bits.sources(streams, "chain", self.number, *keys)


class _ChainStage(Stage):
    def __init__(self, stages: list[Stage]) -> None:
        self.stages = stages

    def reset(self) -> None:
        for stage in self.stages:
            stage.reset()

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        samples: Samples = (t_ns, x_deg, y_deg, valid)
        for stage in self.stages:
            samples = stage.run(*samples)
        return samples


@dataclass(frozen=True)
class BehindMap(StreamMap):
    """The map of a stage (`inner`) that comes after others: a change is followed first through
    those `before`, each of which says how it travels (:meth:`StreamMechanism.propagate_move`).
    """

    before: Stages
    inner: StreamMap

    def run(self, samples: int, move_deg: Fraction | None, metric: str) -> Loss:
        """The loss of what is left of the change."""
        for stage in self.before:
            moved = stage.propagate_move(samples, Fraction(0) if move_deg is None else move_deg)
            if moved is None:
                raise PromiseError(f"How far {stage.name} spreads a change is not bounded.")
            samples, move_deg = moved[0], None if move_deg is None else moved[1]
        return self.inner.run(samples, move_deg, metric)
