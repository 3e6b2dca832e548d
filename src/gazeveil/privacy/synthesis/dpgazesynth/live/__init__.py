"""DPGazeSynth on the device itself: synthetic gaze while samples come."""
