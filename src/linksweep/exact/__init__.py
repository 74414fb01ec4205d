"""Proofs in exact arithmetic: the field of integers modulo a 61-bit prime as the scalar of every algorithm."""

from .points import Structure, patterns
from .proof import prove
from .report import Outcome, Proof

__all__ = ["Outcome", "Proof", "Structure", "patterns", "prove"]
