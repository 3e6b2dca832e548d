"""Synthesis: recordings that nobody made, from parameters of recordings that people made."""
