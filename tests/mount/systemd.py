#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A booted systemd: cudafs@.service is active when the mount is usable, and a service with the drop-in uses it."""

from cudafs_testing import *
from rootfs import booted, install, rootfs

CONSUMER = """[Unit]
Description=A service that compiles with CUDA

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'nvcc --version; ls $CUDA_HOME/include/cuda.h; nvcc -arch=sm_120a -c /srv/k.cu -o /srv/k.o'
"""


def prepare(root):
    need("debootstrap", "nsenter", "unshare", root=True)
    install(root)
    os.makedirs(root + "/srv/site")
    run(["mount", "--bind", site_packages(place("site"), "13.2"), root + "/srv/site"], rc=0)
    write(root + "/etc/cudafs/default.json", {"cudafs": 1, "sources": [{"site-packages": "/srv/site"}]})
    write(root + "/etc/systemd/system/consumer.service", CONSUMER)
    write(root + "/srv/k.cu", CCCL)
    folder = root + "/etc/systemd/system/consumer.service.d"
    os.makedirs(folder)
    shutil.copy(os.path.join(SOURCE, "contrib", "systemd", "cudafs.conf"), folder)


@fixture
def machine():
    need("debootstrap", "nsenter", "unshare", root=True)
    with rootfs() as root:
        prepare(root)
        with booted(root) as inside:
            yield root, inside


def journal(inside, unit):
    return inside("journalctl", "--no-pager", "-u", unit).text


@case("the unit is clean and starts; it is active once the mount is usable", timeout=1800)
def _():
    _, inside = machine()
    started = inside("systemctl", "start", "cudafs@default")
    check(started.rc == 0, f"{started}\n{journal(inside, 'cudafs@default')}")
    equal(inside("systemctl", "is-active", "cudafs@default").out.strip(), "active", "state")
    inside("/opt/cuda-virtual/bin/nvcc", "--version", rc=0)
    told = inside("systemd-analyze", "verify", "cudafs@default.service").text
    # A minimal system has no man, and says so of each Documentation= line.
    told = "\n".join(line for line in told.splitlines() if "Command 'man " not in line)
    check("cudafs@" not in told, f"systemd-analyze verify:\n{told}")


@case("a service with the drop-in starts the mount it needs, sees CUDA_HOME and compiles")
def _():
    root, inside = machine()
    inside("systemctl", "stop", "cudafs@default", rc=0)
    check(inside("mountpoint", "-q", "/opt/cuda-virtual").rc != 0, "still mounted after stop")
    started = inside("systemctl", "start", "consumer")
    check(started.rc == 0, f"{started}\n{journal(inside, 'consumer')}\n{journal(inside, 'cudafs@default')}")
    said = journal(inside, "consumer")
    check("release 13.2" in said and "/opt/cuda-virtual/include/cuda.h" in said, said)
    equal(read_bytes(root + "/srv/k.o")[:4], b"\x7fELF", "object")


@case("reload keeps the unit active; stop leaves nothing")
def _():
    _, inside = machine()
    inside("systemctl", "start", "cudafs@default", rc=0)
    inside("systemctl", "reload", "cudafs@default", rc=0)
    equal(inside("systemctl", "is-active", "cudafs@default").out.strip(), "active", "state")
    inside("/opt/cuda-virtual/bin/nvcc", "--version", rc=0)
    inside("systemctl", "stop", "consumer", "cudafs@default", rc=0)
    check(inside("mountpoint", "-q", "/opt/cuda-virtual").rc != 0, "still mounted after stop")
    check(inside("pgrep", "cudafs").rc != 0, "a process is left")


@case("a refused manifest fails the unit with the reason in the journal, and is not tried again")
def _():
    root, inside = machine()
    write(root + "/etc/cudafs/bad.json", {"cudafs": 1, "sources": ["/srv/site"], "release": "13.5"})
    write(root + "/etc/cudafs/bad.conf", "CUDAFS_MOUNT=/opt/bad\n")
    check(inside("systemctl", "start", "cudafs@bad").rc != 0, "a refused plan started")
    shown = inside("systemctl", "show", "-p", "ExecMainStatus,NRestarts", "cudafs@bad").out
    check("ExecMainStatus=3" in shown and "NRestarts=0" in shown, shown)
    check("13.5" in journal(inside, "cudafs@bad"), journal(inside, "cudafs@bad"))


main()
