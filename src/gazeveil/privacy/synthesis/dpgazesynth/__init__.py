"""DPGazeSynth (Ren et al. 2024): devices report windows of gaze privately, a curator adds the
reports up, and gaze is drawn from the sums.
"""
