"""The curator of DPGazeSynth: sums, model, synthesis."""
