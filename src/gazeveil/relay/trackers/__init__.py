"""Trackers of laboratories: Pupil Core, Neon and Invisible, the Lab Streaming Layer, and replayed
recordings.
"""
