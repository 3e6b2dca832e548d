"""Recordings of Pupil Labs' trackers."""
