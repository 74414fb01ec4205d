"""From rows to numbers: triangles of a log of any length, estimators on them, and how far they may be off."""
