"""Gaze over the Lab Streaming Layer, by the package `pylsl` and the library liblsl; both are
optional and loaded when asked for.
"""
