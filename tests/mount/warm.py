#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A warm compile costs the daemon nothing: the kernel answers from its caches."""

from cudafs_testing import *


@fixture
def mounted():
    need("g++", "fincore")
    with Mount(manifest({"site-packages": site_packages(place("site"), "13.2")})) as mount:
        yield mount


def compile_cub(mount):
    source = write(place("src") + "/sum.cu", CUB)
    argv = ["-std=c++17", *gencode("sm_120a"), f"-I{mount.path}/include", "-c", source, "-o", source + ".o"]
    return mount.tool("nvcc", *argv, rc=0, env=mount.env())


def drops():
    """How often somebody has told the kernel to forget its caches; a virtual machine's host may, any time."""
    return re.findall(r"^drop_(?:pagecache|slab) (\d+)", read("/proc/vmstat"), re.M)


def undisturbed(mount, warm_up, action, attempts=30):
    """The requests that action costs after warm_up, with the kernel's caches left alone in between. Requests that come
    while every page stayed where it was are never excused, and a cache that never stays whole is no pass."""
    files = files_below(mount.path) + files_below(mount.path + "/.cudafs/toolchains/13.2/bin")
    for _ in range(attempts):
        start = drops()
        warm_up()
        with held_in_memory(files):
            # Once more: what was given up just before the pages were held comes back, and is not idle now.
            warm_up()
            held = resident(files)
            # Asking for the status costs requests of its own.
            idle, before = mount.requests(), mount.requests()
            action()
            after = mount.requests()
            kept = drops() == start and resident(files) == held
        if kept:
            sent = {k: after[k] - 2 * before[k] + idle[k] for k in after}
            return {k: n for k, n in sent.items() if n}
    skip(f"the kernel gave up cached pages during each of {attempts} attempts")


@case("a warm compile of a CUB program sends 0 requests", timeout=1500)
def _():
    mount, seconds = mounted(), []
    compile_cub(mount)
    sent = undisturbed(mount, lambda: compile_cub(mount), lambda: seconds.append(compile_cub(mount).seconds))
    print("# seconds of the measured compiles: " + " ".join(f"{s:.2f}" for s in seconds))
    equal(sent, {}, "requests of the warm compile")


@case("open never reaches the daemon, nor does a known name")
def _():
    mount = mounted()

    def use():
        for _ in range(100):
            read_bytes(mount.path + "/include/cuda_runtime.h")
            os.listdir(mount.path + "/include")

    equal(undisturbed(mount, use, use), {}, "requests")


@case("names that are not there are asked for once")
def _():
    mount = mounted()

    def ask():
        for _ in range(50):
            check(not os.path.exists(mount.path + "/include/no-such-header.h"), "it exists")

    equal(undisturbed(mount, ask, ask), {}, "requests")


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
