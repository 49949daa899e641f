"""What a published run ran and on what, by the names it gives: the parts of reading one."""

from __future__ import annotations

from calibrate.published.chips import Chip, chip_of
from calibrate.published.drafts import Draft, draft_of
from calibrate.published.runtimes import runtime_family
from calibrate.published.targets import format_of, target_of

__all__ = ["Chip", "Draft", "chip_of", "draft_of", "format_of", "runtime_family", "target_of"]
