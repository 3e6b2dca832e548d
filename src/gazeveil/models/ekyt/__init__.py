"""Eye Know You Too (Lohr and Komogortsev 2022): a dense network that turns seconds of gaze velocity
into 128 numbers that say who looks.
"""
