# SPDX-License-Identifier: MIT
"""Venvs of real clients, made once by pip and kept in the cache, and the mount that they build through."""

from cudafs_testing import *


def client_venv(name, *steps):
    """A venv in the cache; each step is a list of requirements, or a function of the venv's python."""
    with cache_entry("clients/" + name) as (path, ready):
        if not ready:
            run([host_python(), "-m", "venv", path], rc=0)
            for step in steps:
                arguments = step(path + "/bin/python") if callable(step) else step
                pip("install", "-q", "--no-compile", *arguments, python=path + "/bin/python", timeout=2400)
    # Scripts of a renamed venv name its old place, so clients are run as `python -m` or from Python.
    return os.path.join(CACHE, "clients", name)


@fixture
def toolkit_mount():
    need("g++")
    site = site_packages(place("site"), "13.2", also=("profiler", "curand", "culibos"))
    with Mount(manifest({"site-packages": site}, targets=["sm_120f"])) as mount:
        yield mount


def client_env(mount, venv, **more):
    """What a user would set: the mount's variables, the venv's programs first in PATH."""
    return mount.env(PATH=f"{venv}/bin:{PATH}", MAX_JOBS="2", NINJA_STATUS="", **more)


def only_from(mount, paths, what):
    """Every CUDA file among paths must lie in the mount."""
    # A CUDA file is one whose name the mount has too, or that lies in any CUDA's usual place.
    names = {name for _, _, files in os.walk(mount.path) for name in files}
    foreign = sorted({p for p in paths if not os.path.realpath(p).startswith(mount.path + "/")
                      and (re.search(r"/(cuda(-[\d.]+)?|nvidia/(cu\d+|cuda_\w+))/", p)
                           or (os.path.basename(p) in names and re.match(r"cuda|cu[a-z]+\.h$|nv", os.path.basename(p))))})
    equal(foreign, [], f"{what}: CUDA files from outside the mount")
    inside = [p for p in paths if os.path.realpath(p).startswith(mount.path + "/")]
    check(inside, f"{what}: nothing at all came from the mount")
