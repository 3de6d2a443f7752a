"""The variables that spark-submit sees."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

# The launcher's JVM only spells out the command of the driver's: it should be up quickly.
LAUNCHER_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def submit_environment(environment: Mapping[str, str], master: str, folder: Path) -> dict[str, str]:
    """Airflow's own variables stay here: connections with their passwords are among them.

    `folder` is the submission's own; a local master finds its Spark there. A cluster finds the whole of the installed
    one, whose modules YARN sends along.
    """
    passed = {name: value for name, value in environment.items() if not name.lstrip("_").startswith("AIRFLOW_")}
    passed.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_JVM)
    # The task may have been started by a path that is not on PATH, as in a virtual environment.
    passed["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), passed.get("PATH", os.defpath)])
    if master.startswith("yarn"):
        # It would go to the executors, in front of the modules that are sent along.
        passed.pop("PYTHONPATH", None)
    spark = None if "SPARK_HOME" in passed else installed_spark()
    if master.startswith("local"):
        passed.setdefault("PYSPARK_PYTHON", sys.executable)
        passed.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if spark is not None:
            passed["SPARK_HOME"] = str(link_spark(spark, folder / "spark"))
    elif spark is not None:
        # Spark would ask PYSPARK_PYTHON for both. That is the executors' own, which this machine need not have.
        passed["SPARK_HOME"] = str(spark)
        passed.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return passed


def installed_spark() -> Path | None:
    """The PySpark that this Python imports, if it brings a whole Spark."""
    found = find_spec("pyspark")
    package = Path(found.origin).parent if found and found.origin else None
    return package if package and (package / "bin" / "spark-submit").is_file() else None


def link_spark(package: Path, home: Path) -> Path:
    """A SPARK_HOME of that Spark, without `python/lib/pyspark.zip`.

    Spark would put that archive in front of the same modules beside it. Nothing keeps what Python compiles out of an
    archive: the driver and the workers would each take 0.4 s more to come up, in every run.
    """
    home.mkdir()
    for name in ("bin", "conf", "jars"):
        if (package / name).is_dir():
            (home / name).symlink_to(package / name)
    return home
