"""Which mechanism for which purpose: a table measured on real recordings."""

from gazeveil.release.advice.ranking import Advice, advise
from gazeveil.release.advice.rows import KINDS, PURPOSES, AdviceRow, advice_rows

__all__ = ["KINDS", "PURPOSES", "Advice", "AdviceRow", "advice_rows", "advise"]
