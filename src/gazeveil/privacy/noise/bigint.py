"""What doubles cannot settle, decided with whole numbers of 512 bits and more; see
:mod:`gazeveil.privacy.noise.spherical`.

Each of the words that a try began with is drawn on by seven further words. Reals are held as
integers times 2**-BITS (fixed point). This happens once in millions of draws, so it may be slow.
"""

from __future__ import annotations

import math
from fractions import Fraction

from gazeveil.privacy import rational
from gazeveil.privacy.noise.spherical import WIDE_RAD
from gazeveil.privacy.randomness.rng import WordArray

#: Further words of each word of a try.
MORE = 7

_BITS = 640
_ONE = 1 << _BITS
_PARTS = 512


def _uniforms(words: WordArray, count: int) -> list[int]:
    """The numbers the first `count` words begin, as fixed point: the middle of what 512 bits leave
    open.
    """
    rest = words[count:].reshape(count, MORE)
    numbers = []
    for i in range(count):
        value = int.from_bytes(
            int(words[i]).to_bytes(8, "big") + rest[i].astype(">u8").tobytes(), "big"
        )
        numbers.append((2 * value + 1) << (_BITS - _PARTS - 1))
    return numbers


def _fixed(value: Fraction | float) -> int:
    exactly = Fraction(value)
    return (exactly.numerator << _BITS) // exactly.denominator


def _cos_sin(turns: int) -> tuple[int, int]:
    """Cosine and sine of a number of turns in fixed point."""
    return rational.cos_sin_of_turn(turns % _ONE, _BITS)


def _vector(ix: int, iy: int, step: float) -> tuple[list[int], int, int, int]:
    """Direction of a lattice point, the cosine and sine of its longitude, and the sine of its angle
    from the zenith.
    """
    cos_lon, sin_lon = _cos_sin(_fixed(Fraction(ix) * Fraction(step) / 360 - Fraction(1, 2)))
    up, flat = _cos_sin(_fixed(Fraction(iy) * Fraction(step) / 360))
    return [(flat * sin_lon) >> _BITS, up, (flat * cos_lon) >> _BITS], cos_lon, sin_lon, flat


def distance_steps(dx: int, dy: int) -> int:
    """Distance of two lattice points of a screen in steps, as fixed point."""
    return math.isqrt((dx * dx + dy * dy) << (2 * _BITS))


def distance_rad(ax: int, ay: int, bx: int, by: int, step: float) -> int:
    """Angle between two lattice points of the sphere in radians, as fixed point."""
    a, b = _vector(ax, ay, step)[0], _vector(bx, by, step)[0]
    cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    length = math.isqrt(sum(c * c for c in cross)) >> _BITS
    dot = sum(p * q for p, q in zip(a, b, strict=True)) >> _BITS
    if length == 0:
        return 0 if dot > 0 else rational.pi(_BITS)
    return (rational.turn_of(length, dot, _BITS) * 2 * rational.pi(_BITS)) >> _BITS


def test_passes(distance: int, threshold: float, scale: float, words: WordArray) -> bool:
    """Whether distance <= threshold + Laplace(scale); the last bit of the first word is the sign,
    the 63 others begin the uniform.
    """
    positive = bool(int(words[0]) & 1)
    first = int(words[0]) >> 1
    value = int.from_bytes(words[1:].astype(">u8").tobytes(), "big")
    uniform = (2 * ((first << (64 * MORE)) + value) + 1) << (_BITS - _PARTS)
    eta = (-rational.log(uniform, _BITS) * _fixed(scale)) >> _BITS
    return distance <= _fixed(threshold) + (eta if positive else -eta)


def screen_noise(scale: float, words: WordArray) -> tuple[int, int]:
    """Planar Laplace noise, rounded."""
    u1, u2, turn = _uniforms(words, 3)
    rho = (-(rational.log(u1, _BITS) + rational.log(u2, _BITS)) * _fixed(scale)) >> _BITS
    cos, sin = _cos_sin(turn)
    return _rounded(rho * cos, 2 * _BITS), _rounded(rho * sin, 2 * _BITS)


def _rounded(value: int, bits: int) -> int:
    return (value + (1 << (bits - 1))) >> bits


def _wide_arc(scale_rad: float, uniform: int, keep: int) -> tuple[int, int] | None:
    """Cosine and sine of the arc to a uniform point, both with the other sign for the one opposite,
    or None where neither is kept.
    """
    cosine, sine = _ONE - 2 * uniform, 2 * math.isqrt(uniform * (_ONE - uniform))
    pi, scale = Fraction(rational.pi(_BITS), _ONE), Fraction(scale_rad)
    rho = Fraction(rational.turn_of(sine, cosine, _BITS), _ONE) * 2 * pi
    level = (keep * (_ONE + rational.exp_minus(pi / scale, _BITS))) >> _BITS
    here = rational.exp_minus(rho / scale, _BITS)
    opposite = rational.exp_minus(max(pi - rho, Fraction(0)) / scale, _BITS)
    if level < here:
        return cosine, sine
    return (-cosine, -sine) if level < here + opposite else None


def _narrow_arc(
    scale_rad: float, first: int, second: int, keep: int, shrink: float, lead: float
) -> tuple[int, int] | None:
    """Cosine and sine of the arc of a planar Laplace chord, or None where it is not kept."""
    radius = -(rational.log(first, _BITS) + rational.log(second, _BITS))
    half = (((radius * _fixed(shrink)) >> _BITS) * _fixed(scale_rad)) >> (_BITS + 1)
    longest = (((radius - rational.log(keep, _BITS)) * _fixed(scale_rad)) >> _BITS) - _fixed(lead)
    pi = rational.pi(_BITS)
    if longest <= 0 or half >= (
        _cos_sin((longest << (_BITS - 2)) // pi)[1] if longest < pi else _ONE
    ):
        return None
    square = (half * half) >> _BITS
    return _ONE - 2 * square, 2 * math.isqrt(square * (_ONE - square))


def sphere_noise(
    ix: int, iy: int, scale_rad: float, step: float, words: WordArray, shrink: float, lead: float
) -> tuple[int, int] | None:
    """A lattice point around a lattice point, or None where the try is rejected."""
    if scale_rad > WIDE_RAD:
        first, keep, turn = _uniforms(words, 3)
        arc = _wide_arc(scale_rad, first, keep)
    else:
        first, keep, turn, second = _uniforms(words, 4)
        arc = _narrow_arc(scale_rad, first, second, keep, shrink, lead)
    if arc is None:
        return None
    cos_rho, sin_rho = arc
    (vx, vy, vz), cos_lon, sin_lon, flat = _vector(ix, iy, step)
    cos_turn, sin_turn = _cos_sin(turn)
    east, north = (sin_rho * cos_turn) >> _BITS, (sin_rho * sin_turn) >> _BITS
    up = vy
    x = (cos_rho * vx + east * cos_lon - ((north * up) >> _BITS) * sin_lon) >> _BITS
    y = (cos_rho * vy + north * flat) >> _BITS
    z = (cos_rho * vz - east * sin_lon - ((north * up) >> _BITS) * cos_lon) >> _BITS
    lon = (rational.turn_of(x, z, _BITS) + (_ONE >> 1)) % _ONE
    down = rational.turn_of(math.isqrt(((x * x + z * z) >> _BITS) << _BITS), y, _BITS)
    per_turn = round(360 / step)
    return _rounded(lon * per_turn, _BITS), _rounded(down * per_turn, _BITS)


def point(
    sphere: bool,
    ix: int,
    iy: int,
    scale: float,
    step: float,
    words: WordArray,
    shrink: float,
    lead: float,
) -> tuple[int, int] | None:
    """A noisy lattice point around a lattice point, or None where the try is rejected; the scale is
    in steps, on a sphere in radians.
    """
    if sphere:
        return sphere_noise(ix, iy, scale, step, words, shrink, lead)
    zx, zy = screen_noise(scale, words)
    return ix + zx, iy + zy
