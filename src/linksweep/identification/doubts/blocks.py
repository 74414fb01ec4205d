"""Tests on blocks of a log, for residuals of any colour.

A sum over the rows of a log has a standard error that grows with the autocorrelation of the rows. Sums over blocks
that are long compared with the correlation time of the noise are nearly independent, and their own spread measures that
error. Correlation between neighbouring blocks is counted as by W. K. Newey and K. D. West, "A simple, positive
semi-definite, heteroskedasticity and autocorrelation consistent covariance matrix" (1987).
"""

from __future__ import annotations

import numpy as np

LAGS = 2
DOUBT = 1e-4  # probability with which a remark may be made of a log that is as it should be


def error_of_sum(blocks: np.ndarray) -> np.ndarray:
    """The covariance (k, k) of the sum of the rows of `blocks` (n, k), whose expectation is zero."""
    found = blocks.T @ blocks
    total = found.copy()
    for lag in range(1, min(LAGS, len(blocks) - 1) + 1):
        both = blocks[lag:].T @ blocks[:-lag]
        total += (1.0 - lag / (LAGS + 1.0)) * (both + both.T)
    wider = np.maximum(np.diag(total), np.diag(found)) / np.maximum(np.diag(found), 1e-300)
    grow = np.sqrt(wider)
    return found * grow[:, None] * grow


def bar(blocks: int, tests: int = 1) -> float:
    """Standard errors beyond which one of `tests` sums over blocks is not zero."""
    from scipy.stats import t

    return float(t.isf(0.5 * DOUBT / max(1, tests), max(1, blocks - 1)))
