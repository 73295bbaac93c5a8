#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A CMake project with LANGUAGES CXX CUDA, find_package(CUDAToolkit) and find_package(CCCL) builds through the mount."""

from clients import *

# Not 3.25: with that minimum the module of CMake 3.25.1 insists on nvToolsExt, which CUDA 13 does not have.
PROJECT = """cmake_minimum_required(VERSION 3.24)
project(probe LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
find_package(CCCL REQUIRED)
add_executable(probe main.cpp kernel.cu)
target_link_libraries(probe PRIVATE CUDA::cudart CUDA::cuda_driver CUDA::nvrtc CCCL::CCCL)
foreach(v CUDAToolkit_VERSION CUDAToolkit_BIN_DIR CUDAToolkit_INCLUDE_DIRS CUDAToolkit_LIBRARY_DIR CUDAToolkit_LIBRARY_ROOT
    CUDAToolkit_NVCC_EXECUTABLE CUDA_cudart_LIBRARY CUDA_cuda_driver_LIBRARY CUDA_nvrtc_LIBRARY CCCL_DIR
    CMAKE_CUDA_COMPILER CMAKE_CUDA_COMPILER_TOOLKIT_ROOT CMAKE_CUDA_DEVICE_LINKER CMAKE_CUDA_FATBINARY
    CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES)
  message(STATUS "VALUE ${v}=${${v}}")
endforeach()
"""
MAIN = """#include <cuda.h>
#include <cuda_runtime.h>
#include <nvrtc.h>
void launch(int *);
int main(int argc, char **) {
  int major = 0, minor = 0;
  nvrtcVersion(&major, &minor);
  if (argc > 5) launch(nullptr), cuInit(0);
  return cudaGetLastError() == cudaSuccess && major == 13 ? 0 : 1;
}
"""
KERNEL = """#include <cub/cub.cuh>
__global__ void k(int *p) { *p = cuda::std::is_same<int, int>::value; }
void launch(int *p) { k<<<1, 1>>>(p); }
"""
IMPLICIT = ("/usr/lib", "/lib", "/usr/include", "/usr/local/include", "/usr/local/lib")


@once
def built():
    need("cmake", "ninja")
    mount = toolkit_mount()
    source, build = place("source"), place("build")
    for name, text in (("CMakeLists.txt", PROJECT), ("main.cpp", MAIN), ("kernel.cu", KERNEL)):
        write(f"{source}/{name}", text)
    argv = ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=120-real",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    configured = run(argv, env=mount.env())
    check(configured.rc == 0, f"cmake failed:\n{configured}")
    made = run(["cmake", "--build", build, "--verbose"], env=mount.env())
    check(made.rc == 0, f"the build failed:\n{made}")
    return build, dict(re.findall(r"VALUE (\w+)=(.*)", configured.out)), made


@case("the project configures, compiles and links")
def _():
    build, _, _ = built()
    needed = run(["readelf", "-d", build + "/probe"], rc=0).out
    for library in ("libcudart.so.13", "libcuda.so.1", "libnvrtc.so.13"):
        check(library in needed, f"{library} is not NEEDED:\n{needed}")


@case("every path that CMake reports lies in the mount")
def _():
    _, values, _ = built()
    m = toolkit_mount().path
    check(values["CUDAToolkit_VERSION"].startswith("13.2"), f"version {values['CUDAToolkit_VERSION']}")
    for name, value in values.items():
        if name == "CUDAToolkit_VERSION":
            continue
        paths = [p for p in value.split(";") if p.startswith("/") and not os.path.realpath(p).startswith(IMPLICIT)]
        check(paths, f"{name} is {value!r}")
        for path in paths:
            check(os.path.realpath(path).startswith(m), f"{name}: {path} lies outside")


@case("every path of the compile commands lies in the mount, too")
def _():
    build, _, made = built()
    m = toolkit_mount().path
    paths = re.findall(r"(?:-I|-isystem |-isystem=|-L)(/\S+)", made.out)
    only_from(toolkit_mount(), [p for p in paths if not p.startswith(build)], "compile commands")
    check(f"{m}/bin/nvcc" in made.out, f"another nvcc:\n{made}")


main()
