"""Whether a release is what its certificate says, and holds nothing of the recordings behind it."""

from gazeveil.release.verify.outcome import Verification, VerifyCheck
from gazeveil.release.verify.run import verify

__all__ = ["Verification", "VerifyCheck", "verify"]
