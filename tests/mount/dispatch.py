#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The dispatchers: the face does what it can, another toolchain what it cannot, and nobody sees the difference."""

from cudafs_testing import *


def pair(face):
    """A 13.0 toolkit and a 13.2 venv, with the face of one of them."""
    return manifest({"id": "system", "toolkit": toolkit()}, {"id": "venv", "site-packages": site()}, release=face)


@once
def toolkit():
    return make_toolkit("13.0", place("cuda-13.0"))


@once
def site():
    return site_packages(place("site"), "13.2")


@fixture
def mounted(face):
    need("g++")
    with Mount(pair(face)) as mount:
        yield mount


def assembled(mount, version, **options):
    source = write(f"{place('ptx')}/k.ptx", ptx(version))
    output = source.replace(".ptx", ".cubin")
    result = mount.tool("ptxas", "-arch=sm_120a", source, "-o", output, **options)
    return result, output


@case("ptxas of the 13.0 face assembles .version 9.2 by 13.2")
def _():
    mount = mounted("13.0")
    result, output = assembled(mount, "9.2")
    equal((result.rc, result.text), (0, ""), "ptxas")
    equal(read_bytes(output)[:4], b"\x7fELF", "cubin")
    direct = mount.path + "/.cudafs/toolchains/13.2/bin/ptxas"
    run([direct, "-arch=sm_120a", output.replace(".cubin", ".ptx"), "-o", output + "2"], rc=0)
    check(read_bytes(output) == read_bytes(output + "2"), "the cubin differs from the one that 13.2 makes")


@case("what the face can do, the face does: .version 9.0 by 13.0")
def _():
    mount = mounted("13.0")
    result, output = assembled(mount, "9.0")
    equal((result.rc, result.text), (0, ""), "ptxas")
    direct = mount.path + "/.cudafs/toolchains/13.0/bin/ptxas"
    run([direct, "-arch=sm_120a", output.replace(".cubin", ".ptx"), "-o", output + "2"], rc=0)
    check(read_bytes(output) == read_bytes(output + "2"), "the cubin differs from the one that 13.0 makes")


@case("PTX on standard input is routed too")
def _():
    mount = mounted("13.0")
    output = place("ptx") + "/k.cubin"
    mount.tool("ptxas", "-arch=sm_120a", "-", "-o", output, rc=0, stdin=ptx("9.2"))
    equal(read_bytes(output)[:4], b"\x7fELF", "cubin")


@case("--version still tells of the face")
def _():
    for tool in ("ptxas", "nvcc", "nvlink"):
        check("release 13.0," in mounted("13.0").tool(tool, "--version", rc=0).out, f"{tool} --version")
        check("release 13.2," in mounted("13.2").tool(tool, "--version", rc=0).out, f"{tool} --version")


@case("the other way round: the 13.2 face does both, and 13.0 can be forced")
def _():
    mount = mounted("13.2")
    for version in ("9.0", "9.2"):
        equal(assembled(mount, version)[0].rc, 0, f"ptxas for {version}")
    forced, _ = assembled(mount, "9.2", env=environment(CUDAFS_RELEASE="13.0"))
    equal(forced.rc, 255, "exit of 13.0's ptxas")
    check("Unsupported .version 9.2; current version is '9.0'" in forced.text, f"13.0's own message:\n{forced}")


@case("what no toolchain can do gives the tool's own error and one line of advice")
def _():
    result, _ = assembled(mounted("13.0"), "9.9")
    equal(result.rc, 255, "exit")
    check("Unsupported .version 9.9" in result.text, f"message:\n{result}")


@case("CUDAFS_TRACE tells the decision on stderr, and nothing else changes")
def _():
    result, _ = assembled(mounted("13.0"), "9.2", env=environment(CUDAFS_TRACE="1"))
    equal((result.rc, result.out), (0, ""), "ptxas")
    check("13.2" in result.err, f"trace:\n{result}")


@case("the bytes of each dispatcher differ between the two plans at one place, and between tools")
def _():
    where, found = place("mount"), {}
    for face in ("13.0", "13.2"):
        with Mount(pair(face), path=where):
            found[face] = {tool: read_bytes(f"{where}/bin/{tool}") for tool in ("nvcc", "ptxas", "nvlink")}
    for tool in ("nvcc", "ptxas", "nvlink"):
        check(found["13.0"][tool] != found["13.2"][tool], f"bin/{tool} is the same in both")
    check(len(set(found["13.0"].values())) == 3, "two tools have the same bytes")


@case("identity comes from the file, not from argv[0]; exit codes and output are the tool's")
def _():
    m = mounted("13.0").path
    result = run(["bash", "-c", f"exec -a ptxas {m}/bin/nvcc --version"], rc=0)
    check("Cuda compiler driver" in result.out, f"argv[0]=ptxas made nvcc something else:\n{result}")
    for tool, args, rc in (("nvcc", ["-c", "no-such-file.cu"], 1), ("ptxas", ["--no-such-option"], 255),
                           ("ptxas", ["no-such-file.ptx"], 255), ("nvcc", ["--list-gpu-arch"], 0)):
        face = run([f"{m}/bin/{tool}", *args])
        real = run([f"{m}/.cudafs/toolchains/13.0/bin/{tool}", *args])
        equal((face.rc, face.out, face.err), (real.rc, real.out, real.err), f"{tool} {args}")
        equal(face.rc, rc, f"exit of {tool} {args}")


@case("nvcc for an architecture that only 13.5 knows compiles in 13.5's whole view")
def _():
    need("g++")
    newer = site_packages(place("site"), "13.5")
    file = manifest({"id": "system", "toolkit": toolkit()}, {"id": "venv", "site-packages": newer}, release="13.0")
    with Mount(file) as mount:
        m = mount.path
        source = write(place("src") + "/k.cu", CCCL)
        mount.tool("nvcc", *gencode("sm_107a"), f"-I{m}/include", "-isystem", f"{m}/include/cccl", "-MD", "-c", source,
                   "-o", source + ".o", rc=0)
        used = re.findall(r"(/\S+)", read(source.replace(".cu", ".cu.d") if os.path.exists(source.replace(".cu", ".cu.d"))
                                          else source + ".d"))
        face = [p for p in used if p.startswith(f"{m}/targets") or p.startswith(f"{m}/include")]
        equal(face, [], "headers of the 13.0 face in a 13.5 compile")
        check(any(p.startswith(f"{m}/.cudafs/toolchains/13.5/") for p in used), f"no header of 13.5's view: {used[:5]}")
        mount.tool("nvcc", *gencode("sm_120a"), "-c", source, "-o", source + ".o", rc=0)


@case("a copy of a dispatcher elsewhere refuses instead of guessing a root")
def _():
    copy = place("foreign") + "/bin"
    os.makedirs(copy)
    shutil.copy(mounted("13.0").path + "/bin/nvcc", copy + "/nvcc")
    os.chmod(copy + "/nvcc", 0o755)
    result = run([copy + "/nvcc", "--version"])
    # The trailer's own path still leads to the mount, so it may be served from there; nothing else is right.
    check(result.rc == 127 or "release 13.0," in result.out, f"a foreign copy said:\n{result}")


@case("an empty environment and no PATH do not stop nvcc from finding itself")
def _():
    m = mounted("13.2").path
    check("release 13.2," in run([m + "/bin/nvcc", "--version"], env={}, rc=0).out, "nvcc --version")
    link = work() + "/linked-nvcc"
    os.symlink(m + "/bin/nvcc", link)
    check("release 13.2," in run([link, "--version"], rc=0).out, "nvcc through a link")


@case("INCLUDES, SYSTEM_INCLUDES and LIBRARIES of the caller do not leak into nvcc")
def _():
    m = mounted("13.2").path
    env = environment(INCLUDES="-I/leaked", SYSTEM_INCLUDES="-isystem /leaked", LIBRARIES="-L/leaked")
    told = run([m + "/bin/nvcc", "-v", "--dryrun", "-c", "x.cu"], env=env).text
    check("TOP=" in told and "/leaked" not in told, f"nvcc saw them:\n{told}")


main()
