#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One release out of several sources, and every file's origin told by explain."""

from cudafs_testing import *


def sources_of(mount, **wanted):
    for path, source in wanted.items():
        told = cudafs_json("explain", f"{mount.path}/{path}")
        equal(told["source"], source, f"source of {path}")
        check(told["reason"] and told["version"] and told["component"], f"explain is incomplete: {told}")


@case("13.2 out of three venvs composes, compiles, and explain names the source of each")
def _():
    need("g++")
    file = manifest(
        {"id": "compiler", "site-packages": site_packages(place("a"), "13.2", ("nvcc", "crt", "nvvm"))},
        {"id": "headers", "site-packages": site_packages(place("b"), "13.2", ("runtime", "cccl", "nvrtc", "nvjitlink"))},
        {"id": "math", "site-packages": site_packages(place("c"), "13.2", ("curand",))}, targets=["sm_120a"])
    plan = cudafs_json("plan", file)
    equal((plan["verdict"], plan["release"]), ("coherent", "13.2"), "plan")
    with Mount(file) as mount:
        mount.verify("sm_120a")
        sources_of(mount, **{
            "bin/cudafe++": "compiler", "nvvm/bin/cicc": "compiler", "include/crt/host_config.h": "compiler",
            "include/cuda_runtime.h": "headers", "include/cccl/cub/cub.cuh": "headers", "lib64/libcudart.so.13": "headers",
            "include/curand.h": "math", "lib64/libcurand.so": "math"})
        told = cudafs("explain", mount.path + "/lib64/libcurand.so").out
        check("math" in told and "nvidia-curand" in told.replace("_", "-"), f"explain says:\n{told}")


@case("a half-installed toolkit (no CCCL, no nvvm) is completed from a venv of its release")
def _():
    need("g++")
    toolkit = make_toolkit("13.2", place("cuda-13.2"), omit=("cccl", "nvvm"))
    site = site_packages(place("site"), "13.2", ("cccl", "nvvm"))
    alone = cudafs_json("plan", manifest({"toolkit": toolkit}), rc=3)
    check("component-missing" in [p["code"] for p in alone["problems"]], f"problems: {alone['problems']}")
    file = manifest({"id": "system", "toolkit": toolkit}, {"id": "venv", "site-packages": site}, targets=["sm_120a"])
    with Mount(file) as mount:
        mount.verify("sm_120a")
        sources_of(mount, **{"bin/cudafe++": "system", "nvvm/bin/cicc": "venv", "include/cccl/cub/cub.cuh": "venv"})


@case("components can be taken from a named source and left out")
def _():
    a = site_packages(place("a"), "13.2", also=("curand",))
    b = site_packages(place("b"), "13.2", ("curand", "nvrtc"))
    file = manifest({"id": "a", "site-packages": a}, {"id": "b", "site-packages": b},
                    components={"libcurand": {"from": "b"}, "libnvjitlink": {"omit": True}})
    with Mount(file) as mount:
        sources_of(mount, **{"lib64/libcurand.so": "b", "bin/cudafe++": "a"})
        check(not glob.glob(mount.path + "/lib64/libnvJitLink*"), "an omitted component is there")


main()
