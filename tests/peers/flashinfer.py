#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""FlashInfer's JIT, unmodified, builds and loads a module for SM120 through the mount."""

from clients import *

TORCH, FLASHINFER, TVM_FFI = "torch==2.15.0", "flashinfer-python==0.7.4", "apache-tvm-ffi==0.1.15.post2"

BUILD = """
import json, os
from flashinfer.jit.activation import gen_act_and_mul_module
from flashinfer.jit.cpp_ext import get_cuda_path, get_cuda_version
spec = gen_act_and_mul_module("silu")
spec.build(verbose=True)
module = spec.load()
print("RESULT " + json.dumps({"home": get_cuda_path(), "version": str(get_cuda_version()), "library": str(spec.jit_library_path
    if hasattr(spec, "jit_library_path") else ""), "module": str(module)}))
"""


def torch_needs(python):
    """What importing torch takes: all that it requires, less the compilers that FlashInfer's build does not touch."""
    code = "import importlib.metadata as m; print('\\n'.join(m.requires('torch')))"
    lines = run([python, "-c", code], rc=0).out.splitlines()
    plain = [line for line in lines if "extra ==" not in line]
    return [line for line in plain if not re.match(r"(triton|sympy|networkx|setuptools)\b", line)]


def venv():
    return client_venv(
        "flashinfer",
        ["--no-deps", TORCH, FLASHINFER, "nvidia-ml-py"],
        torch_needs,
        [TVM_FFI, "cuda-bindings", "numpy", "requests", "tqdm", "packaging", "ninja", "click", "tabulate", "einops"])


@once
def built():
    mount, where = toolkit_mount(), venv()
    workspace = place("workspace")
    env = client_env(mount, where, FLASHINFER_CUDA_ARCH_LIST="12.0f", FLASHINFER_WORKSPACE_BASE=workspace)
    result = run([where + "/bin/python", "-c", BUILD], env=env, cwd=workspace, timeout=900)
    check(result.rc == 0, f"FlashInfer's build failed:\n{result}")
    line = re.search(r"^RESULT (.*)$", result.out, re.M)
    check(line, str(result))
    return json.loads(line[1]), result, workspace


@case("gen_act_and_mul_module('silu').build() for 12.0f builds and loads", timeout=2700)
def _():
    told, result, workspace = built()
    libraries = files_below(workspace, ".so")
    check(libraries, f"no library was built:\n{result}")
    check("compute_120f" in read(ninja_file(workspace)), "the build was not for 12.0f")


def ninja_file(workspace):
    found = files_below(workspace, ".ninja")
    check(found, "FlashInfer wrote no ninja file")
    return next((f for f in found if "silu" in f), found[0])


@case("the paths and the version that it reports are the mount's")
def _():
    told, _, _ = built()
    equal(told["home"], toolkit_mount().path, "get_cuda_path()")
    check(told["version"].startswith("13.2"), f"get_cuda_version() is {told['version']}")


@case("nvcc, includes and libraries of its build lie in the mount")
def _():
    _, result, _ = built()
    paths = re.findall(r"(?:-I|-isystem |-L)(/\S+)", result.out)
    only_from(toolkit_mount(), paths, "commands")
    check(f"{toolkit_mount().path}/bin/nvcc -" in result.out, f"another nvcc was called:\n{result}")


@case("every CUDA header that was read lies in the mount")
def _():
    _, _, workspace = built()
    depfiles = files_below(workspace, ".d")
    if depfiles:
        paths = {p for d in depfiles for p in re.findall(r"(/[^\s\\:]+)", read(d))}
    else:  # ninja has taken them into its own log
        folder = os.path.dirname(ninja_file(workspace))
        deps = run([venv() + "/bin/ninja", "-C", folder, "-t", "deps"], rc=0).out
        paths = set(re.findall(r"^\s+(/\S+)$", deps, re.M))
    bundled = [p for p in paths if "/flashinfer/data/" in p or "/tvm_ffi/" in p]  # its own CCCL: not ours to place
    only_from(toolkit_mount(), paths - set(bundled), "depfiles")


main()
