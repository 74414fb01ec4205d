"""Zero-phase low-pass filter and numerical derivatives of logged signals.

The filter is a Butterworth filter of order 4, run forwards and backwards, so it has no phase delay and a gain of one
half at the cut-off frequency. Derivatives are central differences over nine rows, exact for polynomials of degree 8, so
that their error lies below that of the filter.
"""

from __future__ import annotations

from math import factorial

import numpy as np

ORDER = 4  # of the filter, in each direction
STENCIL = 4  # rows on either side of a central difference


def low_pass(x: np.ndarray, dt: float, cutoff: float) -> np.ndarray:
    """Return x (rows, columns) low-pass filtered at `cutoff` (Hz) without delay; unchanged if it is infinite."""
    if cutoff >= 0.5 / dt:
        return x
    from scipy.signal import butter, sosfiltfilt

    sections = butter(ORDER, cutoff, fs=1.0 / dt, output="sos")
    period = 1.0 / (dt * cutoff)
    pad = max(3 * (2 * ORDER + 1), round(2.0 * period))
    window = min(len(x), max(8, round(period)))
    extrapolation = _extrapolation(window, pad)
    out = np.empty_like(x)
    for k in range(x.shape[1]):  # one column at a time to save memory
        column = x[:, k]
        before, after = extrapolation @ column[:window], (extrapolation @ column[: -window - 1 : -1])[::-1]
        out[:, k] = sosfiltfilt(sections, np.concatenate([before, column, after]), padlen=0)[pad:-pad]
    return out


def _extrapolation(window: int, pad: int) -> np.ndarray:
    """Return the matrix (pad, window) that continues a window of rows backwards along its least-squares cubic.

    The usual odd reflection at the ends would force the acceleration there to zero.
    """
    inside, outside = np.arange(window) / window, np.arange(-pad, 0) / window
    return np.vander(outside, 4) @ np.linalg.pinv(np.vander(inside, 4))


def derivative(x: np.ndarray, dt: float, order: int) -> np.ndarray:
    """Return the first or second derivative of x (rows, columns), by one-sided differences at the ends."""
    from scipy.ndimage import correlate1d

    width = 2 * STENCIL + 1
    out = correlate1d(x, difference_weights(STENCIL, width, order), axis=0, mode="nearest")
    for k in range(STENCIL):
        out[k] = difference_weights(k, width, order) @ x[:width]
        out[-1 - k] = difference_weights(width - 1 - k, width, order) @ x[-width:]
    return out / dt**order


def difference_weights(at: int, width: int, order: int) -> np.ndarray:
    """Return weights of `width` rows for a derivative at row `at`, exact for polynomials of degree width - 1."""
    offsets = (np.arange(width) - at) / width  # scaled to about 1, which keeps the Vandermonde matrix well conditioned
    powers = np.vander(offsets, increasing=True).T
    return np.linalg.solve(powers, factorial(order) * np.eye(width)[order]) / width**order
