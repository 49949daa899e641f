"""What makes the samples of a calibration less than trustworthy, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from calibrate.samples import Sample, drift, settings_text
from calibrate.timing import is_double

DRIFT_TOLERANCE = 0.1


def warnings_of(samples: Sequence[Sample]) -> Iterator[str]:
    """A sentence for each doubt; none where all is well."""
    suspect = [
        sample
        for sample in samples
        if sample.doubling is not None and not is_double(sample.doubling)
    ]
    if suspect:
        worst = max(suspect, key=lambda sample: abs(math.log(sample.doubling or 2) - math.log(2)))
        yield (
            f"{len(suspect)} of {len(samples)} samples did not take twice the time for twice the "
            f"work, at worst {worst.doubling:.2f} times: {worst.probe} "
            f"{settings_text(worst.settings)}"
        )
    if (drifted := drift(samples)) > DRIFT_TOLERANCE:
        yield f"the reference kernel drifted by {drifted:.0%}; is something else running?"
