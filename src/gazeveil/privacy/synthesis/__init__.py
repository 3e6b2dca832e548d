"""Synthesis: artificial recordings from parameters of real ones."""
