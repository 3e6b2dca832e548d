"""Random words: where they come from, who keeps them, and who draws from them.

Three layers, each built on the one before:

1. A :class:`~gazeveil.privacy.randomness.rng.Source` gives 64-bit words:
   :class:`~gazeveil.privacy.randomness.rng.SystemSource` from an unshared key of the operating
   system, :class:`~gazeveil.privacy.randomness.supply.KeyedSource` the same words each time under a
   key that follows from the :class:`~gazeveil.privacy.randomness.supply.MasterKey` of a release,
   :class:`~gazeveil.privacy.randomness.rng.TestStream` repeatable words without protection.
   :class:`~gazeveil.privacy.randomness.supply.Bits` says which of them serves the streams of a
   session.
2. :class:`~gazeveil.privacy.randomness.rng.Words` runs samplers over a source and keeps the words
   that they left; :class:`~gazeveil.privacy.randomness.rng.WordRecords` are words in numbered
   records for draws that may have to be known more exactly.
3. :class:`~gazeveil.privacy.randomness.supply.Supply` draws noise ahead for streams that go in
   step, of exact integers or, for published readings, of floating-point normals.
   :mod:`~gazeveil.privacy.randomness.rng` has uniform whole numbers and shuffles.

No word protects twice. A :class:`~gazeveil.privacy.randomness.rng.ProcessIdentity` tells each
of these objects whether it is the original or a forked, unpickled or copied one; such a copy takes
a key of its own or refuses. Used words are overwritten with zeros.
"""
