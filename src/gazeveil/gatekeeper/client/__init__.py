"""The Gatekeeper's client for apps in Python."""

from gazeveil.gatekeeper.client.client import Batch, Gaze, Rect, Target, connect

__all__ = ["Batch", "Gaze", "Rect", "Target", "connect"]
