"""A PostgreSQL of a test's own, which ends with it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "psql")
USER = "postgres"


def find(program: str) -> str:
    """On PATH, or where Debian puts it."""
    found = shutil.which(program) or next(
        (str(each) for each in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)), None
    )
    assert found, f"{program} is missing: scripts/setup.sh installs it (on Debian: sudo apt-get install postgresql)"
    return found


class Cluster:
    """It listens in its folder only, on no port of the machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def address(self) -> str:
        """As SQLAlchemy writes it."""
        return f"postgresql+psycopg2://{USER}@/{USER}?host={self._folder}"

    def start(self) -> None:
        data = self._folder / "data"
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--no-sync", f"--username={USER}", "-D", str(data))
        listen = f"-c listen_addresses= -c unix_socket_directories={self._folder} -c fsync=off"
        self._run("pg_ctl", "-D", str(data), "-w", "-l", str(self._folder / "log"), "-o", listen, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")

    def ask(self, statement: str) -> str:
        """What psql says; an error of the database is one here."""
        arguments = ["-h", str(self._folder), "-U", USER, "-d", USER, "-v", "ON_ERROR_STOP=1", "-At", "-f", "-"]
        return self._run("psql", *arguments, said=statement)

    def _run(self, program: str, *arguments: str, said: str = "") -> str:
        # PostgreSQL refuses to run as root.
        ended = subprocess.run(
            [find(program), *arguments],
            input=said,
            capture_output=program == "psql",
            stdout=None if program == "psql" else subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=60,
            cwd=self._folder,
            user=USER if os.geteuid() == 0 else None,
        )
        if ended.returncode:
            raise DatabaseError(ended.stderr)
        return ended.stdout or ""


class DatabaseError(Exception):
    """What the database, or one of its programs, has said."""


@contextmanager
def postgresql() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="kpipe-pg-"))
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam(USER).pw_uid, -1)
    cluster = Cluster(folder)
    try:
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
