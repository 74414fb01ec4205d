"""The low-pass filter and the derivatives of logged signals.

The filter is a Butterworth filter run forwards and backwards, which has no phase: its gain is one half at the cut-off;
before the first row and after the last the motion goes on along a cubic. Derivatives are central differences over nine
rows, exact for polynomials of degree 8, so that what they add lies below the band's own error.
"""

from __future__ import annotations

from math import factorial

import numpy as np

ORDER = 4  # of the filter, each way
REACH = 4  # rows on either side of a derivative


def low_passed(x: np.ndarray, dt: float, cutoff: float) -> np.ndarray:
    """x (rows, columns) without what is beyond the cut-off (Hz), and without delay; infinity: as it is."""
    if cutoff >= 0.5 / dt:
        return x
    from scipy.signal import butter, sosfiltfilt

    sections = butter(ORDER, cutoff, fs=1.0 / dt, output="sos")
    period = 1.0 / (dt * cutoff)
    pad = max(3 * (2 * ORDER + 1), round(2.0 * period))
    window = min(len(x), max(8, round(period)))
    before = _extrapolation(window, pad)
    out = np.empty_like(x)
    for k in range(x.shape[1]):  # one by one: memory for one column
        column = x[:, k]
        longer = np.concatenate([before @ column[:window], column, (before @ column[: -window - 1 : -1])[::-1]])
        out[:, k] = sosfiltfilt(sections, longer, padlen=0)[pad:-pad]
    return out


def _extrapolation(window: int, pad: int) -> np.ndarray:
    """(pad, window): the `pad` rows before a window of rows, along the cubic that fits the window best.

    A motion that is turned over at its end instead, as is usual, has no acceleration there.
    """
    inside, outside = np.arange(window) / window, np.arange(-pad, 0) / window
    return np.vander(outside, 4) @ np.linalg.pinv(np.vander(inside, 4))


def derivative(x: np.ndarray, dt: float, order: int) -> np.ndarray:
    """The first or second derivative of x (rows, columns), by nine rows around each; at the ends by the nine next."""
    from scipy.ndimage import correlate1d

    width = 2 * REACH + 1
    out = correlate1d(x, difference_weights(REACH, width, order), axis=0, mode="nearest")
    for k in range(REACH):
        out[k] = difference_weights(k, width, order) @ x[:width]
        out[-1 - k] = difference_weights(width - 1 - k, width, order) @ x[-width:]
    return out / dt**order


def difference_weights(at: int, width: int, order: int) -> np.ndarray:
    """Weights of `width` rows for a derivative at row `at` that is exact for polynomials of degree width - 1."""
    places = (np.arange(width) - at) / width  # near 1: else high powers drown the low ones
    powers = np.vander(places, increasing=True).T
    return np.linalg.solve(powers, factorial(order) * np.eye(width)[order]) / width**order
