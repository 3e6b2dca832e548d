"""Mechanisms on maps of where people look."""
