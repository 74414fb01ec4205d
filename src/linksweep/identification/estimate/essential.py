"""Essential parameters: the numbers without which torques would be predicted worse.

M. Gautier, C. Presse, "Sequential identification of base parameters of robots", 1991.
"""

from __future__ import annotations

import numpy as np

from linksweep.identification.estimate.least_squares import Estimate


def essential(found: Estimate, covariance: np.ndarray, sums: int, relative: float) -> list[int]:
    """Which numbers are left when those are set to 0, one after the other, without which torques are predicted as well.

    Always the one that is least certain for its size goes, as long as it is less certain than `relative` and an F test
    at 1 % does not miss it. covariance: with the colour of what is left over. sums: rows of the fit. A number whose
    value is less than its standard deviation in the fit of all is none of them, even if it stands in for others.
    """
    from scipy.stats import f as fisher

    root, target = found.root, found.target
    kept = [k for k in range(len(found.known)) if found.known[k]]
    if not kept:
        return kept
    # coloured residuals say less than their number: what of the covariance the colour makes
    colour = max(1.0, float(np.median(np.diag(covariance)[kept] / np.diag(found.covariance)[kept])))
    left = max(1.0, (sums - len(kept)) / colour)
    bar = colour * float(fisher.ppf(0.99, 1, left))
    while len(kept) > 1:
        part = root[:, kept]
        values, *_ = np.linalg.lstsq(part, target, rcond=None)
        spread = np.sqrt(np.diag(np.linalg.inv(part.T @ part)) * colour)
        uncertain = spread / np.maximum(np.abs(values), 1e-300)
        worst = int(np.argmax(uncertain))
        # setting it to 0 raises the misfit by (value / spread)^2
        if uncertain[worst] < relative or (values[worst] / spread[worst]) ** 2 * colour > bar:
            break
        del kept[worst]
    certain = np.square(found.values) > np.diag(covariance)
    return [k for k in kept if certain[k]]
