"""What a module has logged in a test."""

from __future__ import annotations

import logging

import pytest


def logged_by(caplog: pytest.LogCaptureFixture, *modules: str) -> list[logging.LogRecord]:
    """Return the records of modules with these names; other parts, such as clients, log in the same test."""
    return [each for each in caplog.records if each.name.endswith(modules)]
