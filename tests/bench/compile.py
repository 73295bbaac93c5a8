#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compile times through a mount against the same files on disk: first after the mount, and warm."""

import statistics

from cudafs_testing import *

ROUNDS = 3 if QUICK else 7


def seconds(nvcc, source, include):
    argv = [nvcc, "-std=c++17", *gencode("sm_120a"), f"-I{include}", "-c", source, "-o", source + ".o"]
    return run(argv, rc=0).seconds


@case("CUB object: first and warm, mount against disk")
def _():
    need("g++")
    source = write(place("src") + "/sum.cu", CUB)
    disk = make_toolkit("13.2", place("cuda-13.2"))
    file = manifest({"toolkit": disk})
    seconds(disk + "/bin/nvcc", source, disk + "/include")  # the page cache holds the backing files
    native = [seconds(disk + "/bin/nvcc", source, disk + "/include") for _ in range(ROUNDS)]
    first, warm = [], []
    for _ in range(ROUNDS):
        with Mount(file) as mount:
            first.append(seconds(mount.path + "/bin/nvcc", source, mount.path + "/include"))
            warm.append(seconds(mount.path + "/bin/nvcc", source, mount.path + "/include"))
    base = statistics.median(native)
    for name, values in (("disk", native), ("first", first), ("warm", warm)):
        middle = statistics.median(values)
        print(f"# {name:5} median {middle:.3f} s  min {min(values):.3f}  max {max(values):.3f}  {middle / base:.2f}x")


@case("time from mount to usable")
def _():
    file = manifest({"site-packages": site_packages(place("site"), "13.2")})
    taken = []
    for _ in range(ROUNDS):
        start = time.monotonic()
        with Mount(file) as mount:
            check(os.path.exists(mount.path + "/bin/nvcc"), "not usable")
            taken.append(time.monotonic() - start)
    print(f"# mount: median {statistics.median(taken):.3f} s  min {min(taken):.3f}  max {max(taken):.3f}")


main()
