"""Kaleido: (epsilon, w, r)-differential privacy for a stream of gaze."""
