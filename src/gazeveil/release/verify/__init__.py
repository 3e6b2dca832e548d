"""Whether a release is what its certificate says, and holds nothing of the recordings behind it."""

from gazeveil.release.verify.files import VerifiedRelease, VerifyCheck
from gazeveil.release.verify.run import verify

__all__ = ["VerifiedRelease", "VerifyCheck", "verify"]
