#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A warm compile costs the daemon nothing: the kernel answers from its caches."""

from cudafs_testing import *


@fixture
def mounted():
    need("g++")
    with Mount(manifest({"site-packages": site_packages(place("site"), "13.2")})) as mount:
        yield mount


def compile_cub(mount):
    source = write(place("src") + "/sum.cu", CUB)
    argv = ["-std=c++17", *gencode("sm_120a"), f"-I{mount.path}/include", "-c", source, "-o", source + ".o"]
    return mount.tool("nvcc", *argv, rc=0, env=mount.env())


def page_cache_drops():
    found = re.search(r"^drop_pagecache (\d+)", read("/proc/vmstat"), re.M)
    return int(found[1]) if found else 0


@case("a warm compile of a CUB program sends 0 requests")
def _():
    mount = mounted()
    seconds = [compile_cub(mount).seconds for _ in range(2)]
    idle, before = mount.requests(), mount.requests()
    dropped = page_cache_drops()
    seconds.append(compile_cub(mount).seconds)
    after = mount.requests()
    equal(page_cache_drops(), dropped, "somebody dropped the page cache meanwhile: drops")
    # Asking for the status costs requests of its own.
    asking = {k: before[k] - idle.get(k, 0) for k in before}
    sent = {k: after[k] - before.get(k, 0) - asking.get(k, 0) for k in after}
    sent = {k: n for k, n in sent.items() if n}
    print("# seconds of the three compiles: " + " ".join(f"{s:.2f}" for s in seconds))
    equal(sent, {}, "requests of the third compile")


@case("open never reaches the daemon")
def _():
    mount = mounted()
    before = mount.requests()
    for _ in range(100):
        read_bytes(mount.path + "/include/cuda_runtime.h")
        os.listdir(mount.path + "/include")
    after = mount.requests()
    for kind in ("open", "opendir"):
        # The first open of a mount is answered ENOSYS; there is no second.
        check(after.get(kind, 0) <= 1, f"{after.get(kind)} {kind} requests")
    equal(after.get("lookup"), before.get("lookup"), "lookups of names known already")


@case("names that are not there are asked for once")
def _():
    mount = mounted()
    missing = mount.path + "/include/no-such-header.h"
    os.path.exists(missing)
    before = mount.requests()
    for _ in range(50):
        check(not os.path.exists(missing), "it exists")
    equal(mount.requests().get("lookup"), before.get("lookup"), "lookups")


@case("eight readers at once read the same bytes")
def _():
    mount = mounted()
    with Mount(*mount.manifest) as cold:
        script = f"for i in 1 2 3 4 5 6 7 8; do (cd {cold.path} && find . -type f | sort | xargs sha256sum > {work()}/sum.$i) & done; wait"
        run(script, rc=0, timeout=600)
        sums = {read(f"{work()}/sum.{i}") for i in range(1, 9)}
        equal(len(sums), 1, "different listings")
        check(len(sums.pop().splitlines()) > 1000, "too few files")


main()
