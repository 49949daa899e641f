"""The options of `run` for what mlx-vlm runs: block diffusion and trained heads.

They are named as `predict` names them.
"""

from __future__ import annotations

import argparse

from calibrate.commands.run_numbers import probability, read_seed, whole_numbers
from calibrate.run_settings import BY_MLX_VLM, MOST_CANVAS, Settings
from model.commands import options as shared
from model.errors import InputError

LONGEST_ANSWER = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The head, and the block and what is fixed of it."""
    group = parser.add_argument_group(f"{' and '.join(BY_MLX_VLM)}, by the extra `diffusion`")
    group.add_argument("--head", metavar="HEAD", help="draft-head: a trained head of the target")
    group.add_argument("--head-format", metavar="F", help="its weight format (default: bf16)")
    group.add_argument("--block", metavar="TOKENS", help="diffusion: tokens of a block")
    group.add_argument(
        "--answer", metavar="N[,N...]", help="diffusion: length of the answer, one run for each"
    )
    group.add_argument(
        "--steps", metavar="N", help="diffusion: fill each block in N passes, whatever is sure"
    )
    group.add_argument(
        "--committed",
        metavar="X",
        help="diffusion: let a coin fix X tokens a pass on average, whatever is sure",
    )
    group.add_argument(
        "--threshold",
        metavar="P",
        help="diffusion: fix what is surer than P (default: mlx-vlm's); random weights never are",
    )


def denoising(options: argparse.Namespace) -> Settings:
    """The block, and what decides how much of it a pass fixes.

    Raises:
        InputError: an option out of range, or more than one that decides.
    """
    deciding = ("steps", "committed", "threshold")
    given = [f"--{name} {getattr(options, name)}" for name in deciding if getattr(options, name)]
    if len(given) > 1:
        raise InputError(given[0], f"says what {given[1]} says too", "give either")
    block = shared.whole_number("--block", options.block, least=1, most=MOST_CANVAS)
    steps, committed, threshold = 0, None, None
    if options.steps is not None:
        steps = shared.whole_number("--steps", options.steps, least=1, most=block)
    if options.committed is not None:
        committed = shared.number("--committed", options.committed)
        if not 1.0 <= committed <= block:
            wrong = f"cannot be fixed in every pass of a block of {block}"
            right = f"give 1 to {block}: mlx-vlm fixes one token at least"
            raise InputError(f"--committed {options.committed}", wrong, right)
    if options.threshold is not None:
        threshold = probability("--threshold", options.threshold)
    return Settings(
        strategy="diffusion",
        block=block,
        steps=steps,
        committed=committed,
        threshold=threshold,
        seed=read_seed(options),
    )


def answers(options: argparse.Namespace) -> list[int]:
    """The lengths of the answers, one run for each.

    Raises:
        InputError: not whole numbers in range.
    """
    return whole_numbers("--answer", options.answer, LONGEST_ANSWER)
