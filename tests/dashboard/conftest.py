"""What holds for every test of the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without calibrations, whoever runs the tests."""
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))
    return tmp_path
