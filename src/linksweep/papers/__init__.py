"""The papers' own laboratory: operation counts, spatial operators, exact proofs and reproductions of experiments."""
