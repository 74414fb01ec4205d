"""Proofs in exact arithmetic: every algorithm runs over the field of integers modulo a 61-bit prime."""

from .points import Structure, patterns
from .proof import Outcome, Proof, prove

__all__ = ["Outcome", "Proof", "Structure", "patterns", "prove"]
