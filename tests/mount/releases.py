#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real releases, as pip leaves them and as a runfile toolkit: mounted, then verified for every target."""

from cudafs_testing import *


def green(source, release):
    need("g++")
    file = manifest(source, targets=TARGETS)
    plan = cudafs_json("plan", file)
    equal((plan["verdict"], plan["release"]), ("coherent", release), "plan")
    with Mount(file) as mount:
        report = mount.verify(*TARGETS)
        for target in TARGETS:
            tried = [t["name"] for t in report["tests"] if t["target"] == target]
            check(len(tried) >= 6, f"verify tried only {tried} for {target}")


for release in ("13.2",) if QUICK else ("13.0", "13.2", "13.5"):

    @case(f"wheels of {release}, installed by pip into a venv", timeout=1500)
    def _(release=release):
        green({"site-packages": venv(place("venv", make=False), release)}, release)

    @case(f"a toolkit of {release} in the runfile layout", timeout=1500)
    def _(release=release):
        green({"toolkit": make_toolkit(release, place(f"cuda-{release}"))}, release)


@case("what a probe says of each release's ptxas is what it assembles")
def _():
    test = built("tests/unit/test_probe")
    for release in ("13.2",) if QUICK else ("12.8", "12.9", "13.0", "13.2", "13.5"):
        (tool,) = glob.glob(site_packages(place(f"site-{release}"), release, components=("nvcc",)) + "/nvidia/*/bin/ptxas")
        run([test], rc=0, env=dict(environment(), CUDAFS_TEST_PTXAS=tool))


if glob.glob("/usr/local/cuda*/bin/nvcc"):

    @case("the toolkit that this machine has under /usr/local")
    def _():
        with Mount(manifest({"toolkit": host_toolkit()}, targets=["sm_120a"])) as mount:
            mount.verify("sm_120a")


@case("a venv as a string source is recognised, and newest is chosen of several")
def _():
    old, new = place("old", make=False), place("new", make=False)
    run([host_python(), "-m", "venv", "--without-pip", old], rc=0)
    run([host_python(), "-m", "venv", "--without-pip", new], rc=0)
    for path, release in ((old, "13.0"), (new, "13.2")):
        (site,) = glob.glob(path + "/lib/python3*/site-packages")
        site_packages(site, release)
    plan = cudafs_json("plan", manifest(old, new))
    equal((plan["verdict"], plan["release"]), ("coherent", "13.2"), "plan")
    plan = cudafs_json("plan", manifest(old, new, release="13.0"))
    equal((plan["verdict"], plan["release"]), ("coherent", "13.0"), "plan")
    check({"13.0", "13.2"} <= {t["release"] for t in plan["toolchains"]}, f"toolchains: {plan['toolchains']}")


@case("the plan is the same each time, and another when a source is")
def _():
    site = site_packages(place("site"), "13.2")
    file = manifest({"site-packages": site})
    first = cudafs_json("plan", file)["digest"]
    equal(cudafs_json("plan", file)["digest"], first, "digest")
    header = own(site + "/nvidia/cu13/include/cuda_fp16.h")
    write(header, read(header) + "// touched\n")
    check(cudafs_json("plan", file, rc=None)["digest"] != first, "a changed header left the digest as it was")


main()
