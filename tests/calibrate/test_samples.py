from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as generate

from calibrate.samples import (
    REFERENCE,
    Line,
    Sample,
    Settings,
    drift,
    net_of_links,
    samples_of,
    settings_from_text,
    settings_text,
)
from calibrate.timing import Visit

names = generate.from_regex(r"[a-z_]{1,12}", fullmatch=True)
words = generate.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
values = generate.one_of(generate.integers(0, 10**9), words)


def seen(seconds: float) -> Visit:
    return Visit(units=1, times_s=(seconds,), check_units=2, check_s=2 * seconds)


def line(probe: str, settings: str, sweep: int, at: float, seconds: float) -> Line:
    return Line(probe=probe, settings=settings, sweep=sweep, at=at, visit=seen(seconds))


def sample(probe: str, seconds: float, **settings: int) -> Sample:
    return Sample(
        probe=probe,
        settings=tuple(settings.items()),
        seconds=seconds,
        spread=0.0,
        repeats=1,
        at=0.0,
        doubling=2.0,
    )


@given(generate.lists(generate.tuples(names, values), max_size=8).map(tuple))
def test_settings_survive_as_text(settings: Settings) -> None:
    assert settings_from_text(settings_text(settings)) == settings


def test_a_sample_gathers_all_sweeps() -> None:
    (only,) = samples_of([line("op", "", 0, 1.0, 0.1), line("op", "", 1, 50.0, 0.1)])
    assert (only.seconds, only.repeats, only.at, only.doubling) == (0.1, 2, 1.0, 2.0)


def test_settings_are_read_back() -> None:
    (only,) = samples_of([line("attention", "context=4096 rows=2", 0, 0.0, 1.0)])
    assert (only.number("context"), only.number("rows")) == (4096, 2)


def test_a_skipped_probe_gives_no_sample() -> None:
    assert samples_of([Line(probe="op", settings="", sweep=0, at=0.0, reason="out of it")]) == ()


def test_the_reference_keeps_its_visits_apart_and_shows_drift() -> None:
    visits = [line(REFERENCE, "rows=1", 0, at, s) for at, s in ((0.0, 1.0), (9.0, 1.2), (20.0, 1))]
    samples = samples_of(visits)
    assert len(samples) == 3
    assert drift(samples) == pytest.approx(0.2)
    assert drift([]) == 0.0


SHAPE = {"depth": 64, "columns": 128}


class TestLinks:
    def test_the_link_is_interpolated_and_taken_off(self) -> None:
        links = [
            sample("link", 1.0, **SHAPE, rows=1),
            sample("link", 3.0, **SHAPE, rows=5),
        ]
        net = list(net_of_links([*links, sample("linear", 10.0, **SHAPE, rows=2)]))[-1]
        assert (net.link_s, net.seconds) == (1.5, 8.5)  # a quarter of the way from 1 to 3

    def test_beyond_the_last_row_the_last_link_stands(self) -> None:
        links = [sample("link", 1.0, **SHAPE, rows=1)]
        net = list(net_of_links([*links, sample("linear", 10.0, **SHAPE, rows=64)]))[-1]
        assert net.seconds == 9.0

    def test_other_shapes_have_other_links(self) -> None:
        links = [sample("link", 1.0, depth=128, columns=64, rows=1)]
        product = sample("linear", 10.0, **SHAPE, rows=1)
        assert [each.probe for each in net_of_links([*links, product])] == ["link"]

    def test_a_product_shorter_than_its_link_says_nothing(self) -> None:
        links = [sample("link", 1.0, **SHAPE, rows=1)]
        product = sample("linear", 0.9, **SHAPE, rows=1)
        assert [each.probe for each in net_of_links([*links, product])] == ["link"]

    def test_other_probes_are_left_alone(self) -> None:
        attention = sample("attention", 1.0, context=64)
        assert list(net_of_links([attention])) == [attention]
