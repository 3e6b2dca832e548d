"""Studies: cohort x mechanisms x attacks x utilities x scenarios x repetitions, run, cached,
resumed and reported.
"""
