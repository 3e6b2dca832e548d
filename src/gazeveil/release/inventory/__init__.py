"""What recordings say about people beside their gaze, found before anything is released."""

from gazeveil.release.inventory.collect import inventory
from gazeveil.release.inventory.finding import KINDS, Finding, Inventory

__all__ = ["KINDS", "Finding", "Inventory", "inventory"]
