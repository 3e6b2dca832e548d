"""The devices of DPGazeSynth: what they report, and how it is packed."""
