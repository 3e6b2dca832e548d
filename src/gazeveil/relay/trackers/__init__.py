"""Trackers of laboratories: Pupil Core, Neon and Invisible, and the Lab Streaming Layer."""
