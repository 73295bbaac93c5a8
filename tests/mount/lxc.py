#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An LXC container sees the host's mount through the shipped configuration lines, and compiles with it."""

from cudafs_testing import *
from rootfs import rootfs

WHERE = "/opt/cuda-virtual"


@fixture
def mounted():
    need("lxc-execute", "debootstrap", root=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/opt"], rc=0)  # our own /opt, in this namespace
    os.makedirs(WHERE)
    try:
        with Mount(manifest({"site-packages": site_packages(place("site"), "13.2")}), path=WHERE) as mount:
            yield mount
    finally:
        run(["umount", "/opt"])


@fixture
def container():
    mounted()
    with rootfs() as root:
        config = write(place("lxc") + "/config", f"""lxc.rootfs.path = dir:{root}
lxc.uts.name = cudafs-test
lxc.net.0.type = empty
lxc.apparmor.profile = unconfined
lxc.include = {SOURCE}/contrib/lxc/cudafs.conf
""")

        def inside(command, **options):
            return run(["lxc-execute", "-P", os.path.dirname(config), "-n", "cudafs-test", "-f", config, "--", "sh", "-c",
                        command], **options)

        yield root, inside


@case("the container sees the toolkit read-only, and the variables", timeout=1800)
def _():
    _, inside = container()
    shown = inside("echo home=$CUDA_HOME; $CUDA_HOME/bin/nvcc --version; ls -d $CUDA_HOME/include/cuda.h; "
                   "touch $CUDA_HOME/x || echo read-only", rc=0)
    for word in ("home=" + WHERE, "release 13.2", WHERE + "/include/cuda.h", "read-only"):
        check(word in shown.out, str(shown))


@case("nvcc compiles and links in the container through the dispatcher")
def _():
    root, inside = container()
    write(root + "/srv/k.cu", CCCL)
    write(root + "/srv/p.cu", PLAIN)
    inside(f"cd /srv && {WHERE}/bin/nvcc -arch=sm_120a -c k.cu -o k.o && {WHERE}/bin/nvcc -arch=sm_120 -dlto p.cu -o p", rc=0)
    equal(read_bytes(root + "/srv/p")[:4], b"\x7fELF", "program")


@case("ptxas answers in a container whose /proc is its own")
def _():
    root, inside = container()
    write(root + "/srv/k.ptx", ptx("9.2"))
    inside(f"cd /srv && $CUDA_HOME/bin/ptxas -arch=sm_120a k.ptx -o k.cubin", rc=0)
    equal(read_bytes(root + "/srv/k.cubin")[:4], b"\x7fELF", "cubin")


main()
