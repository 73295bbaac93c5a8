# SPDX-License-Identifier: MIT
"""A small Debian to boot systemd in or to run as a container: made once by debootstrap, then overlaid."""

import hashlib

from cudafs_testing import *

PACKAGES = ("systemd,systemd-sysv,dbus,fuse3,g++,libfuse3-3,libjansson4,libarchive13,libelf1,libseccomp2,libssl3,"
            "libsystemd0,zlib1g,libc6-dbg")


def _codename():
    return re.search(r"VERSION_CODENAME=(\w+)", read("/etc/os-release"))[1]


def _mirror():
    """The archive that this machine's apt uses for its own release."""
    sites = run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]).out
    for line in sites.splitlines():
        site, _, release = line.partition(" ")
        if release == _codename():
            return [site]
    return []


def _base():
    name = f"rootfs-{_codename()}-{hashlib.sha256(PACKAGES.encode()).hexdigest()[:8]}"
    with cache_entry(name) as (path, ready):
        if not ready:
            env = dict(environment(), **{k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")})
            run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", _codename(), path, *_mirror()], rc=0,
                env=env, timeout=1500)
            run(f"rm -rf {path}/var/cache/apt/archives/*.deb {path}/var/lib/apt/lists/*")
    return os.path.join(CACHE, name)


@contextmanager
def rootfs():
    """A writable root whose changes are forgotten at the end."""
    base = _base()
    scratch, root = place("overlay"), place("root")
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", scratch], rc=0)
    os.makedirs(scratch + "/up"), os.makedirs(scratch + "/wk")
    run(["mount", "-t", "overlay", "-o", f"lowerdir={base},upperdir={scratch}/up,workdir={scratch}/wk", "none", root], rc=0)
    try:
        yield root
    finally:
        for point in mounts_below(root) + [scratch]:
            run(["umount", "-l", point])


def install(root):
    """Installs the build under test into root, as a package would."""
    run(["meson", "install", "-C", built("."), "--no-rebuild", "--quiet"], rc=0, env=dict(environment(), DESTDIR=root))
    (found,) = glob.glob(root + "/usr/local/bin/cudafs") or glob.glob(root + "/usr/bin/cudafs")
    if os.environ.get("CUDAFS_PROGRAM"):
        _install_checker(root, found)
    return found[len(root):]


def _install_checker(root, found):
    """Lets root's program be started by the script that starts it under valgrind here."""
    os.rename(found, found + "-checked")
    write(found, read(program()).replace("\n", f"\nCUDAFS_PROGRAM={found[len(root):]}-checked\n", 1))
    os.chmod(found, 0o755)
    for tool in glob.glob("/usr/bin/valgrind*"):
        shutil.copy(tool, root + "/usr/bin/")
    for folder in ("/usr/libexec/valgrind", os.environ["CUDAFS_REPORTS"]):
        os.makedirs(root + folder)
        run(["mount", "--bind", folder, root + folder], rc=0)
    # valgrind writes the code that it executes.
    write(root + "/etc/systemd/system/cudafs@.service.d/checker.conf", "[Service]\nMemoryDenyWriteExecute=no\n")


def _own_cgroup(top):
    path = re.search(r"^0::(.*)$", read("/proc/self/cgroup"), re.M)
    return top + (path[1] if path else "/")


@contextmanager
def booted(root):
    """Boots systemd in root; yields a function that runs a command in it."""
    cgroups = place("cgroup")
    run(["mount", "-t", "cgroup2", "none", cgroups], rc=0)
    own_group = _own_cgroup(cgroups)
    before = {d for d, _, _ in os.walk(own_group)}
    script = f"""set -e
        mount --rbind {root} {root}; cd {root}
        mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t tmpfs tmpfs run; mount --rbind /dev dev
        mount -t cgroup2 none sys/fs/cgroup
        exec env -i container=unshare PATH={PATH} chroot . /lib/systemd/systemd"""
    outer = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc",
                              "--propagation", "private", "sh", "-c", script], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        init = wait_for(lambda: read(f"/proc/{outer.pid}/task/{outer.pid}/children").split(), "systemd to start")[0]

        def inside(*argv, **options):
            # systemd's own root: where this test runs in a chroot itself, a path would lead elsewhere there.
            return run(["nsenter", "-t", init, "-a", "--root", "--wd", *argv], env={"PATH": PATH}, **options)

        def running():
            return inside("systemctl", "is-system-running").out.strip() in ("running", "degraded")

        wait_for(running, "systemd to boot", 240)
        yield inside
    finally:
        outer.kill()
        outer.wait()
        time.sleep(0.5)
        for folder in sorted((d for d, _, _ in os.walk(own_group) if d not in before), key=len, reverse=True):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        run(["umount", "-l", cgroups])
