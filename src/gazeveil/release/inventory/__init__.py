"""Inventory of personal data beside gaze in recordings, taken before a release."""

from gazeveil.release.inventory.finding import KINDS, Finding, Inventory
from gazeveil.release.inventory.looks import inventory

__all__ = ["KINDS", "Finding", "Inventory", "inventory"]
