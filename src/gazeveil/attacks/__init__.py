"""What an attacker still gets: identification, linkage, attributes, membership.

Attackers learn from one :class:`gazeveil.features.recording_set.RecordingSet` and are asked about
another; they are values with parameters, known by name (:mod:`gazeveil.attacks.registry`), and the
classifiers inside have scikit-learn's shape.
"""
