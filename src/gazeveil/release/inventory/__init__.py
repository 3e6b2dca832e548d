"""Inventory of personal data beside gaze in recordings, taken before a release."""

from gazeveil.release.inventory.collect import inventory
from gazeveil.release.inventory.finding import KINDS, Finding, Inventory

__all__ = ["KINDS", "Finding", "Inventory", "inventory"]
