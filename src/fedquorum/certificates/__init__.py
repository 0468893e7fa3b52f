"""Votes in, labels and certified levels out. NumPy and SciPy only, so that votes of any origin can be certified."""

from fedquorum.certificates.certificate import ABSTAIN, Certificate, exactly
from fedquorum.certificates.claim import NAMES, certify, certify_counts, check_name, names_for, probability, valid_names

__all__ = [
    "ABSTAIN",
    "NAMES",
    "Certificate",
    "certify",
    "certify_counts",
    "check_name",
    "exactly",
    "names_for",
    "probability",
    "valid_names",
]
