"""Event detection on screen and sphere."""
