"""What an analyst keeps: areas of interest, saliency, prediction, classification, signals, events.

Each utility compares material as recorded with material as released, or trains and tests a task on
them; they are values with parameters, known by name (:mod:`gazeveil.utility.registry`).
"""
