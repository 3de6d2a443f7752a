from __future__ import annotations

from tests.kit.task_fixtures import context, pipeline, plan

__all__ = ["context", "pipeline", "plan"]
