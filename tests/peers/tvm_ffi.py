#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tvm-ffi's load_inline, unmodified, compiles CUDA for SM120 through the mount."""

from clients import *

BUILD = """
import sys
import tvm_ffi.cpp
SOURCE = r'''
#include <cuda_runtime.h>
__global__ void add_one_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
void add_one(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  add_one_kernel<<<1, 32>>>(static_cast<const float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()), 32);
}
'''
module = tvm_ffi.cpp.load_inline("probe", cuda_sources=SOURCE, functions=["add_one"], build_directory=sys.argv[1])
print("LOADED", module.add_one)
"""


@once
def built():
    mount = toolkit_mount()
    where = client_venv("tvm-ffi", ["apache-tvm-ffi==0.1.15.post2", "ninja", "setuptools"])
    folder = place("build")
    env = client_env(mount, where, TVM_FFI_CUDA_ARCH_LIST="12.0f")
    script = write(place("script") + "/build.py", BUILD)
    result = run([where + "/bin/python", script, folder], env=env, timeout=600)
    check(result.rc == 0 and "LOADED" in result.out, f"load_inline failed:\n{result}")
    return folder


@case("load_inline for 12.0f builds and loads", timeout=1200)
def _():
    check(files_below(built(), ".so"), "no library")


@case("nvcc, includes and libraries of its build lie in the mount")
def _():
    (ninja,) = files_below(built(), ".ninja")
    text = read(ninja)
    m = toolkit_mount().path
    check(f"{m}/bin/nvcc" in text, f"another nvcc:\n{text}")
    check("120f" in text, f"not for 12.0f:\n{text}")
    only_from(toolkit_mount(), [p for p in re.findall(r"(/[^\s:$]+)", text) if "cuda" in p or p.startswith(m)], "ninja file")


main()
