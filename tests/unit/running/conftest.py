from __future__ import annotations

from tests.kit.job_fixtures import job, plan, temp_folder

__all__ = ["job", "plan", "temp_folder"]
