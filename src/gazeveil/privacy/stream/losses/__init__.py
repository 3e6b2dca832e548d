"""What becomes of lost samples and pauses: a public clock, and gaze to put where there is none."""
