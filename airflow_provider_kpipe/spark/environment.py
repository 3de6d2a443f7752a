"""The environment variables of spark-submit."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

# The launcher's JVM only prints the command of the driver's JVM: it should start quickly.
LAUNCHER_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def submit_environment(environment: Mapping[str, str], master: str, folder: Path) -> dict[str, str]:
    """Return the variables without Airflow's own, which hold connections with their passwords.

    `folder` belongs to the submission: with a local master, its SPARK_HOME is there. With a cluster, SPARK_HOME is the
    whole installed Spark, whose modules YARN sends along.
    """
    passed = {name: value for name, value in environment.items() if not name.lstrip("_").startswith("AIRFLOW_")}
    passed.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_JVM)
    # This Python may not be on PATH, as in a virtual environment that is not activated.
    passed["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), passed.get("PATH", os.defpath)])
    if master.startswith("yarn"):
        # Spark would pass it to the executors, in front of the modules that it sends along.
        passed.pop("PYTHONPATH", None)
    spark = None if "SPARK_HOME" in passed else installed_spark()
    if master.startswith("local"):
        passed.setdefault("PYSPARK_PYTHON", sys.executable)
        passed.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if spark is not None:
            passed["SPARK_HOME"] = str(link_spark(spark, folder / "spark"))
    elif spark is not None:
        # Spark would use PYSPARK_PYTHON here too. It names the executors' Python, which this machine may lack.
        passed["SPARK_HOME"] = str(spark)
        passed.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return passed


def installed_spark() -> Path | None:
    """Return the PySpark that this Python imports, if it contains a whole Spark."""
    found = find_spec("pyspark")
    package = Path(found.origin).parent if found and found.origin else None
    return package if package and (package / "bin" / "spark-submit").is_file() else None


def link_spark(package: Path, home: Path) -> Path:
    """Make a SPARK_HOME of that Spark, without `python/lib/pyspark.zip`.

    Spark would import that archive instead of the same modules beside it. Python caches no bytecode of modules in an
    archive: the driver and the workers would each take 0.4 s more to start, in every run.
    """
    home.mkdir()
    for name in ("bin", "conf", "jars"):
        if (package / name).is_dir():
            (home / name).symlink_to(package / name)
    return home
