"""Which mechanism for which purpose: a table measured on real recordings."""

from gazeveil.release.advice.rows import KINDS, PURPOSES, Advice, AdviceRow, advice_rows, advise

__all__ = ["KINDS", "PURPOSES", "Advice", "AdviceRow", "advice_rows", "advise"]
