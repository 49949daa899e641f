r"""The same machine under another release of MLX.

A release changes which kernel serves how many rows, not what a kernel costs. So every row law of
a profile is built anew from the table of the release that is asked for, kernel by kernel:

* One that served rows under the profile's own release keeps its rates, draws included. One row
  is always served by the same kernel, so plain decoding costs the same to the last digit.
* One that did not takes the published rate per core (:mod:`.published_rates`) and the bandwidth
  of the one-row kernel, since both read the same memory. So does a matrix-vector
  kernel that served one row and now serves several: at one row it is bound by reading, so its
  arithmetic was never seen.

**mlx 0.31 on an M3.** Its per-row kernel decodes all weights again for every row, at 0.065e12
FLOP/s per core (M3 Ultra). 10 cores beside 92 GB/s make a row of a 4-bit matrix cost 0.50 of the
one-row product, and the first two rows hide behind reading: 3 rows cost 1.5 and 5 cost 2.5. An
M4 Pro shows 0.30 to 0.35 of its one-row call (mlx issue 3839). Its calls hold some 0.2 ms beside
the kernel: with them the same rate per core gives the ratios that were seen, 1.9 at 4 rows and
3.3 (seen: 3.44) at 8. The gain of the wide kernel at 4 rows was published as 1.4 on M3 Ultra, where
these rates say 1.37, but as 1.3 on M4 Pro, where they say 1.9: the per-row rate may be half as high
again there, and its standard error is a quarter.

Where it stops holding: attention and dispatch costs are kept (what releases changed there is not
tabled), and so is the scatter that the fit left on whole passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from model.errors import InputError
from model.machine.constant import Constant
from model.machine.kernels.dispatch import Dispatch, KernelUse, dispatch_of
from model.machine.kernels.published_rates import published_rate
from model.machine.kernels.releases import named_release, priced_release, runtime_name
from model.machine.profile import Header, LawForm, Profile, RegimeForm
from model.machine.row_law import Shape
from model.network.weight_format import weight_format

RATES = ("bandwidth_bytes_per_s", "flops_per_s")
LARGE_MATRIX = {
    Shape.SQUARE: (8192, 8192),
    Shape.WIDE: (8192, 28672),
    Shape.TALL: (28672, 8192),
    Shape.HEAD: (8192, 131_072),
}
"""Depth and columns that stand for a class; `Machine.law` moves the limits of smaller ones."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Costed:
    """A regime and its rates, by the ends of their names."""

    regime: RegimeForm
    rates: Mapping[str, Constant]


def as_runtime(profile: Profile, runtime: str) -> Profile:
    """The profile of the same machine under another release of MLX.

    Its own release is answered with the profile itself.

    Raises:
        InputError: the release is not known, or nothing says which kernels it or the profile's
            own runs on this machine, or what a kernel costs that the profile was not measured with.
    """
    release, header = named_release(runtime), profile.header
    if release == priced_release(header.runtime):
        return profile
    before, after = tabled(header, header.runtime), tabled(header, runtime_name(release))
    forms: list[LawForm] = []
    constants = dict(profile.constants)
    for law in header.laws:
        form, rates = changed_law(profile, law, before, after)
        for name in [name for name in constants if is_rate_of(law, name)]:
            del constants[name]
        forms.append(form)
        constants |= rates
    changed = replace(header, runtime=runtime_name(release), laws=tuple(forms))
    return replace(profile, header=changed, constants=constants)


def tabled(header: Header, runtime: str) -> Dispatch:
    """What the tables say of a runtime on a profile's machine.

    Raises:
        InputError: they say nothing.
    """
    dispatch = dispatch_of(header.device, runtime, header.gpu)
    if dispatch is not None:
        return dispatch
    if header.device == "metal" and header.gpu is None:
        wrong, right = "does not state its GPU", "calibrate again, or add `gpu` to the profile"
    else:
        wrong = f"has no table of the kernels of {runtime} ({header.device})"
        right = f"ask for {header.runtime}, or calibrate under {runtime}"
    raise InputError(f"machine {header.name}", wrong, right)


def is_rate_of(law: LawForm, name: str) -> bool:
    """Whether a constant is a rate of one of the law's regimes."""
    start, _, rate = name.rpartition(".")
    return rate in RATES and start.rpartition(".")[0] == law.name


def changed_law(
    profile: Profile, law: LawForm, before: Dispatch, after: Dispatch
) -> tuple[LawForm, dict[str, Constant]]:
    """A law as the kernels of another release make it, and its rates by name."""
    family = family_of(law.format)
    # A pair of an expert is one row, and 32-bit weights never had another kernel.
    changes = law.shape != Shape.EXPERT and not law.format.startswith("fp32")
    depth, columns = LARGE_MATRIX[Shape(law.shape)] if changes else (0, 0)
    served = before.kernels(family, depth=depth, columns=columns)
    serving = after.kernels(family, depth=depth, columns=columns)
    if served == serving or not changes:
        return law, {n: c for n, c in profile.constants.items() if is_rate_of(law, n)}
    costed = [each for use in serving for each in costed_regimes(profile, law, use, served, family)]
    rates = {
        f"{law.name}.{each.regime.first_row}.{rate}": constant
        for each in costed
        for rate, constant in each.rates.items()
    }
    return replace(law, regimes=tuple(each.regime for each in costed)), rates


def family_of(format_name: str) -> str:
    """The kernel family of a law's format, which is a weight format or a family itself."""
    if format_name in ("affine", "fp", "float"):
        return format_name
    return weight_format(format_name).family


def costed_regimes(
    profile: Profile,
    law: LawForm,
    use: KernelUse,
    served: tuple[KernelUse, ...],
    family: str,
) -> Iterator[Costed]:
    """The regimes that price one kernel of the new release: the profile's own, else published."""
    # qmm and qmm_splitk are two ways to run the same tile, at one rate.
    known = next((each for each in served if each.kernel.rate == use.kernel.rate), None)
    if known is not None:
        yield from kept_regimes(profile, law, known, use)
        if known.last_row != 1 or use.last_row == 1:
            return
    one_row = rates_of(profile, law, law.regimes[0])
    draws = len(next(iter(profile.constants.values())).draws)
    kernel = use.kernel
    yield Costed(
        regime=RegimeForm(
            first_row=max(use.first_row, 2) if known else use.first_row,
            tile_rows=kernel.tile_rows,
            pads=kernel.pads,
            reread=kernel.reread,
            fill_columns=0.0,
        ),
        rates={
            **{rate: one_row[rate] for rate in RATES[:1] if rate in one_row},
            "flops_per_s": published_rate(kernel.rate, family, profile.header.gpu, draws=draws),
        },
    )


def kept_regimes(
    profile: Profile, law: LawForm, known: KernelUse, use: KernelUse
) -> Iterator[Costed]:
    """What priced a kernel's rows under the profile's release, moved to the rows it serves now."""
    following = [regime.first_row for regime in law.regimes[1:]] + [None]
    own = [
        regime
        for regime, end in zip(law.regimes, following, strict=True)
        if (end is None or end > known.first_row)
        and (known.last_row is None or regime.first_row <= known.last_row)
    ]
    for index, regime in enumerate(own):
        first_row = use.first_row if index == 0 else max(regime.first_row, use.first_row)
        is_last = index + 1 == len(own)
        if (use.last_row is None or first_row <= use.last_row) and (
            is_last or own[index + 1].first_row > use.first_row
        ):
            yield Costed(
                regime=replace(regime, first_row=first_row), rates=rates_of(profile, law, regime)
            )


def rates_of(profile: Profile, law: LawForm, regime: RegimeForm) -> dict[str, Constant]:
    """The rates of a regime that the profile states."""
    names = {rate: f"{law.name}.{regime.first_row}.{rate}" for rate in RATES}
    return {r: profile.constants[name] for r, name in names.items() if name in profile.constants}
