#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The mounted tree: a runfile toolkit, whole, whatever the wheels lack."""

import errno
import hashlib

from cudafs_testing import *

TARGET = "targets/" + PLATFORM


@fixture
def plan_file():
    site = site_packages(place("site"), "13.2", also=("cupti", "nvml", "profiler", "curand", "culibos"))
    yield manifest({"id": "venv", "site-packages": site}, targets=["sm_120a"])


@fixture
def mounted():
    need()
    with Mount(plan_file()) as mount:
        yield mount


def site():
    return json.loads(read(plan_file()))["sources"][0]["site-packages"]


def entries(top):
    """Every path below top, as a directory walk finds it."""
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            yield os.path.join(folder, name)


def facts(top):
    found = {}
    for path in entries(top):
        s = os.lstat(path)
        found[os.path.relpath(path, top)] = (s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns)
    return found


@case("the face holds what NVIDIA's runfile toolkit holds")
def _():
    m = mounted().path
    paths = """bin/nvcc bin/nvcc.profile bin/ptxas bin/nvlink bin/cudafe++ bin/fatbinary bin/bin2c bin/crt/link.stub
        bin/crt/prelink.stub nvvm/bin/cicc nvvm/libdevice/libdevice.10.bc nvvm/lib64/libnvvm.so nvvm/lib64/libnvvm.so.4
        nvvm/include/nvvm.h include/cuda.h include/cuda_runtime.h include/crt/host_config.h include/cccl/cuda/std/version
        include/nvrtc.h include/nvJitLink.h include/nvml.h include/cudaProfiler.h include/curand.h
        lib64/libcudart.so lib64/libcudart_static.a lib64/libcudadevrt.a lib64/libnvrtc.so lib64/libnvJitLink.so
        lib64/libcurand.so lib64/stubs/libcuda.so lib64/stubs/libnvidia-ml.so lib64/cmake lib64/pkgconfig
        extras/CUPTI/include/cupti.h extras/CUPTI/lib64/libcupti.so version.json""".split()
    missing = [p for p in paths if not os.path.exists(f"{m}/{p}")]
    equal(missing, [], "missing")


@case("targets/ is real; include, lib64 and lib are links inside the mount")
def _():
    m = mounted().path
    for name in ("include", "lib", "lib/stubs", "lib/cmake", "include/cccl"):
        check(stat.S_ISDIR(os.lstat(f"{m}/{TARGET}/{name}").st_mode), f"{TARGET}/{name} is no directory")
    equal(os.readlink(m + "/include"), TARGET + "/include", "include")
    for name in ("lib64", "lib"):
        equal(os.readlink(f"{m}/{name}"), TARGET + "/lib", name)


@case("no link leads out of the mount")
def _():
    m = mounted().path
    out = {p: os.readlink(p) for top in (m, m + "/.cudafs") for p in entries(top)
           if os.path.islink(p) and not os.path.realpath(p).startswith(m + "/")}
    equal(out, {}, "links that leave the mount")
    dangling = [p for p in entries(m) if os.path.islink(p) and not os.path.exists(p)]
    equal(dangling, [], "dangling links")


@case("every versioned library has its unversioned name")
def _():
    m = mounted().path
    for path in glob.glob(m + "/lib64/lib*.so.*"):
        plain = re.sub(r"\.so\..*", ".so", path)
        if ".alt." in path or "-builtins" in path:
            continue
        check(os.path.exists(plain), f"{os.path.basename(plain)} is missing beside {os.path.basename(path)}")
        equal(read_bytes(plain)[:4], b"\x7fELF", plain)


@case("modes are r-x or r--, the owner is root")
def _():
    m = mounted().path
    for top in (m, m + "/.cudafs"):
        for path in entries(top):
            s = os.lstat(path)
            if os.path.islink(path):
                continue
            equal((s.st_uid, s.st_gid), (0, 0), f"owner of {path}")
            mode = stat.S_IMODE(s.st_mode)
            wanted = (0o555,) if stat.S_ISDIR(s.st_mode) else (0o444, 0o555)
            check(mode in wanted, f"{path} has mode {mode:o}")
    for tool in ("nvcc", "ptxas", "cudafe++", "fatbinary", "nvlink"):
        equal(stat.S_IMODE(os.stat(f"{m}/bin/{tool}").st_mode), 0o555, tool)
    equal(stat.S_IMODE(os.stat(m + "/include/cuda.h").st_mode), 0o444, "cuda.h")


@case("a tool that the zip marks 0744 can be run by others")
def _():
    if not ROOT:
        skip("needs root")
    for tool in ("cudafe++", "ptxas", "nvcc"):
        r = as_user([f"{mounted().path}/bin/{tool}", "--version"])
        check(r.rc == 0 and "release 13.2" in r.text, f"{tool} as another user:\n{r}")


@case("nothing can be written: EROFS")
def _():
    m = mounted().path

    def attempt(what, action):
        try:
            action()
        except OSError as e:
            equal(errno.errorcode[e.errno], "EROFS", what)
        else:
            fail(f"{what} succeeded")

    attempt("create", lambda: open(m + "/new", "w"))
    attempt("open for writing", lambda: os.open(m + "/include/cuda.h", os.O_RDWR))
    attempt("append", lambda: open(m + "/version.json", "a"))
    attempt("truncate", lambda: os.truncate(m + "/version.json", 0))
    attempt("mkdir", lambda: os.mkdir(m + "/bin/new"))
    attempt("unlink", lambda: os.unlink(m + "/bin/nvcc"))
    attempt("rename", lambda: os.rename(m + "/bin/nvcc", m + "/bin/nvcc2"))
    attempt("chmod", lambda: os.chmod(m + "/bin/nvcc", 0o777))
    attempt("utime", lambda: os.utime(m + "/bin/nvcc"))
    attempt("symlink", lambda: os.symlink("nvcc", m + "/bin/other"))
    attempt("link", lambda: os.link(m + "/bin/nvcc", m + "/bin/other"))
    attempt("chown", lambda: os.chown(m + "/bin/nvcc", 1, 1))


@case(".cudafs is served by name and in no listing")
def _():
    m = mounted().path
    check(".cudafs" not in os.listdir(m), ".cudafs is listed")
    for name in ("id", "env", "plan.json", "toolchains/13.2/bin/nvcc", "lease", "gate"):
        check(os.path.exists(f"{m}/.cudafs/{name}"), f".cudafs/{name} is missing")
    equal(os.path.getsize(m + "/.cudafs/lease"), 0, "size of the lease")
    found = [p for p in entries(m) if os.path.basename(p) == "cuda_runtime_api.h"]
    equal(len(found), 1, f"a search finds cuda_runtime_api.h more than once: {found}")


@case(".cudafs/id is the digest of the plan, plan.json the plan")
def _():
    m = mounted().path
    plan = cudafs_json("plan", plan_file())
    equal(read(m + "/.cudafs/id").strip(), plan["digest"], "id")
    served = json.loads(read(m + "/.cudafs/plan.json"))
    check(isinstance(served, dict) and served, "plan.json is empty")
    equal(mounted().status()["digest"], plan["digest"], "digest of status")


@case("a toolchain's view has the layout of the face")
def _():
    m = mounted().path
    view = m + "/.cudafs/toolchains/13.2"
    for name in ("bin", "nvvm", "targets", "include", "lib64", "lib", "version.json"):
        check(os.path.lexists(f"{view}/{name}"), f"the view lacks {name}")
    real = read_bytes(view + "/bin/ptxas")
    equal(hashlib.sha256(real).digest(), hashlib.sha256(read_bytes(site() + "/nvidia/cu13/bin/ptxas")).digest(), "ptxas")


@case("files are the sources' files, byte for byte, with their times")
def _():
    m = mounted().path
    cu13 = site() + "/nvidia/cu13"
    for face, source in (("bin/cudafe++", "bin/cudafe++"), ("nvvm/bin/cicc", "nvvm/bin/cicc"),
                         ("include/cuda.h", "include/cuda.h"), ("lib64/libcudart.so.13", "lib/libcudart.so.13"),
                         ("include/cccl/cub/cub.cuh", "include/cccl/cub/cub.cuh")):
        check(read_bytes(f"{m}/{face}") == read_bytes(f"{cu13}/{source}"), f"{face} differs from its source")
        equal(os.stat(f"{m}/{face}").st_mtime_ns, os.stat(f"{cu13}/{source}").st_mtime_ns, f"mtime of {face}")


@case("listings agree with lookups")
def _():
    m = mounted().path
    for folder, _, _ in os.walk(m):
        with os.scandir(folder) as listing:
            for entry in listing:
                s = os.lstat(entry.path)
                equal(entry.inode(), s.st_ino, f"inode of {entry.path}")
                equal(entry.is_dir(follow_symlinks=False), stat.S_ISDIR(s.st_mode), f"type of {entry.path}")
    with check_enoent():
        os.stat(m + "/bin/no-such-tool")


@contextmanager
def check_enoent():
    try:
        yield
    except FileNotFoundError:
        return
    fail("a name that is not there was found")


@case("inodes, sizes, modes and times survive a remount, at another place too")
def _():
    before = facts(mounted().path)
    check(len(before) > 1000, f"only {len(before)} entries")
    for path in (None, None):
        with Mount(plan_file(), path=path) as again:
            equal({k: v for k, v in facts(again.path).items() if before.get(k) != v}, {}, "changed by a remount")
    files = {}
    for name, fact in before.items():  # one inode for two names is one file with two names
        check(files.setdefault(fact[0], fact) == fact, f"{name} shares inode {fact[0]} with a different file")


@case("mounting the same plan again is done at once and changes nothing")
def _():
    m = mounted()
    before = m.status()
    cudafs("mount", plan_file(), m.path)
    equal(len(mounts_below(m.path)), 1, "mounts at the place")
    equal(m.status()["pid"], before["pid"], "serving process")


@case("version.json, nvcc, cuda.h and libcudart say one version")
def _():
    m = mounted().path
    told = json.loads(read(m + "/version.json"))["cuda"]["version"]
    check(re.fullmatch(r"13\.2\.\d+", told), f"version.json says {told}")
    check("release 13.2," in mounted().tool("nvcc", "--version", rc=0).out, "nvcc --version is not 13.2")
    check(re.search(r"#define CUDA_VERSION\s+13020", read(m + "/include/cuda.h")), "cuda.h is not 13.2")
    if os.path.exists(m + "/version.txt"):
        check(re.fullmatch(r"CUDA Version \d+\.\d+\.\d+\n?", read(m + "/version.txt")), "version.txt")


@case("nvcc finds its whole world inside the mount, however it is called")
def _():
    m = mounted().path
    for argv, cwd in (([m + "/bin/nvcc"], None), (["nvcc"], None), (["./nvcc"], m + "/bin"), (["../bin/nvcc"], m + "/nvvm")):
        env = environment(PATH=f"{m}/bin:{PATH}")
        told = run([*argv, "-v", "--dryrun", "-c", "x.cu"], env=env, cwd=cwd).text
        for name in ("TOP", "NVVMIR_LIBRARY_DIR", "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES"):
            line = re.search(rf"#\$ {name}=(.*)", told)
            check(line, f"nvcc -v as {argv} tells no {name}:\n{told}")
            for path in re.findall(r'/[^" ]+', line[1]):
                where = os.path.realpath(path)
                check(where.startswith(m), f"{name}, called as {argv}: {path} lies outside")
                check(os.path.isdir(where), f"{name}, called as {argv}: {path} is not there")


@case("the driver stubs are ELF that --as-needed keeps when used and drops when not")
def _():
    need("g++", "readelf")
    m = mounted().path
    check(not os.path.exists(m + "/lib64/libcuda.so.1"), "libcuda.so.1 lies in a loader path")
    source = write(work() + "/driver.cpp", "#include <cuda.h>\n#include <nvml.h>\nint main(int n, char **) "
                   "{ return n > 5 ? cuInit(0) + nvmlInit() : 0; }\n")
    build = ["g++", "-I", m + "/include", source, "-L", m + "/lib64/stubs", "-Wl,--as-needed,--no-undefined"]
    run([*build, "-lcuda", "-lnvidia-ml", "-o", "used"], rc=0)
    needed = run(["readelf", "-d", "used"], rc=0).out
    check("libcuda.so.1" in needed and "libnvidia-ml.so.1" in needed, f"NEEDED:\n{needed}")
    empty = write(work() + "/empty.cpp", "int main() { return 0; }\n")
    run(["g++", empty, "-L", m + "/lib64/stubs", "-Wl,--as-needed", "-lcuda", "-o", "unused"], rc=0)
    check("libcuda" not in run(["readelf", "-d", "unused"], rc=0).out, "an unused stub was kept")
    bad = write(work() + "/bad.cpp", 'extern "C" int cuNoSuchThing(); int main() { return cuNoSuchThing(); }\n')
    check(run(["g++", bad, "-L", m + "/lib64/stubs", "-lcuda", "-o", "bad"]).rc != 0, "an unknown function linked")


@case("pkg-config and CMake files name places inside the mount")
def _():
    m = mounted().path
    files = glob.glob(m + "/lib64/pkgconfig/*.pc")
    check(files, "no pkg-config file")
    need("pkg-config")
    for file in files:
        name = os.path.basename(file)[:-3]
        env = environment(PKG_CONFIG_PATH=m + "/lib64/pkgconfig", PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1")
        flags = run(["pkg-config", "--cflags", "--libs", name], rc=0, env=env).out
        for path in re.findall(r"-[IL](/\S+)", flags):
            check(os.path.realpath(path).startswith(m), f"{name}.pc: {path} lies outside")
            check(os.path.isdir(path), f"{name}.pc: {path} is not there")
    check(glob.glob(m + "/lib64/cmake/cccl/cccl-config.cmake"), "no CCCL package for CMake")


@case("cudafs env and .cudafs/env lead every variable to the mount")
def _():
    m = mounted().path
    told = cudafs("env", m).out
    for source in (f"eval '{told}'" if "'" not in told else f". {write(work() + '/env.sh', told)}", f". {m}/.cudafs/env"):
        shown = run(f"{source}; env", rc=0).out
        for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT"):
            check(f"{name}={m}\n" in shown, f"{name} is not {m}:\n{shown}")
        check(f"PATH={m}/bin:" in shown and f"CUDACXX={m}/bin/nvcc" in shown, f"PATH or CUDACXX:\n{shown}")


@case("df, stat -f and xattr calls are answered")
def _():
    m = mounted().path
    check(os.statvfs(m).f_namemax >= 255, "statvfs")
    try:
        os.getxattr(m + "/bin/nvcc", "user.none")
    except OSError as e:
        check(e.errno in (errno.ENODATA, errno.EOPNOTSUPP), f"getxattr: {e}")


main()
