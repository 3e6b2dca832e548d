"""What a data holder has released of whom, so that a second release adds up or is refused."""

from gazeveil.privacy.publication.ledger.charge import (
    PersonPrint,
    ReleaseCharge,
    charge_of,
    people_prints,
    prints_of,
)
from gazeveil.privacy.publication.ledger.ledger import (
    LedgerAnswer,
    ReleaseLedger,
    check_one_name,
    default_ledger,
)

__all__ = [
    "LedgerAnswer",
    "PersonPrint",
    "ReleaseCharge",
    "ReleaseLedger",
    "charge_of",
    "check_one_name",
    "default_ledger",
    "people_prints",
    "prints_of",
]
