"""DPGazeSynth (S003): devices report windows of gaze privately, a curator adds the reports up, and gaze is drawn from the sums."""
