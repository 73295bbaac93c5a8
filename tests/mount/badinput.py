#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input: one paragraph that names the thing and the mend, the right exit code, nothing left mounted."""

from cudafs_testing import *

USAGE, REFUSED, FAILED = 2, 3, 1


def told(result, rc, *mentions):
    """One paragraph on stderr: "cudafs: WHAT: WHY" and what to do, naming each of the mentions."""
    equal(result.rc, rc, f"exit\n{result}\n")
    lines = result.err.strip().splitlines()
    check(lines and lines[0].startswith("cudafs: "), f"not in the form `cudafs: WHAT: WHY`:\n{result}")
    check("" not in [line.strip() for line in lines], f"more than one paragraph:\n{result}")
    check("ERROR: AddressSanitizer" not in result.err and "runtime error:" not in result.err, str(result))
    text = " ".join(result.err.split())  # long lines are wrapped
    for mention in mentions:
        check(re.search(mention, text, re.I), f"the message does not speak of {mention!r}:\n{result}")


def refuses(file, rc, *mentions):
    """plan and mount both refuse, and nothing is mounted."""
    told(cudafs("plan", file, rc=None), rc, *mentions)
    where = place("mount")
    told(cudafs("mount", file, where, rc=None), rc, *mentions)
    equal(mounts_below(where), [], "mounts")
    equal(os.listdir(where), [], "what lies in the mount point")


def raw(text):
    return write(place("manifest") + "/bad.json", text)


def good():
    return manifest({"site-packages": complete()})


@once
def complete():
    return site_packages(place("site"), "13.2")


@case("an unknown key is named with file, line and the key that was meant")
def _():
    file = raw('{ "cudafs": 1,\n  "sources": ["/nowhere"],\n  "tragets": ["sm_120"]\n}\n')
    refuses(file, USAGE, r"bad\.json:3", "tragets", "targets")


@case("broken JSON, a wrong type, a wrong version and a missing key are named with their line")
def _():
    refuses(raw('{ "cudafs": 1,\n  "sources": [\n'), USAGE, r"bad\.json:\d")
    refuses(raw('{ "cudafs": 1,\n  "sources": "x" }\n'), USAGE, r"bad\.json:2", "sources", "array|list")
    refuses(raw('{ "cudafs": 99, "sources": ["/x"] }\n'), USAGE, r"bad\.json:1", "cudafs", "1")
    refuses(raw('{ "cudafs": 1 }\n'), USAGE, r"bad\.json", "sources")
    refuses(raw('{ "cudafs": 1, "sources": ["/x"], "targets": ["sm_banana"] }\n'), USAGE, r"bad\.json:1", "sm_banana")
    refuses(raw('{ "cudafs": 1, "sources": ["/x"], "release": "thirteen" }\n'), USAGE, "release", "thirteen")
    refuses(raw('{ "cudafs": 1, "sources": ["/x"], "consumers": ["flashinfre"] }\n'), USAGE, "flashinfre", "flashinfer")
    refuses(raw(""), USAGE, r"bad\.json")


@case("no manifest at that path, and a folder in its place")
def _():
    where = place("mount")
    told(cudafs("mount", "/no/such/manifest.json", where, rc=None), USAGE, "/no/such/manifest.json")
    told(cudafs("plan", place("folder") + "/none.json", rc=None), USAGE, "none.json")
    equal(mounts_below(where), [], "mounts")


@case("usage: no such command, no such option, no mount point")
def _():
    for argv in (["frobnicate"], ["mount", "--no-such-option"], ["mount"], ["umount"], ["explain"]):
        result = cudafs(*argv, rc=None)
        equal(result.rc, USAGE, f"exit of {argv}\n{result}\n")
        check(result.err.startswith(("cudafs: ", "usage: ", "Usage: ")), str(result))


@case("a missing source")
def _():
    refuses(manifest({"site-packages": "/no/such/site-packages"}), REFUSED, "/no/such/site-packages")
    refuses(manifest("/no/such/venv"), REFUSED, "/no/such/venv")


@case("a source without CUDA")
def _():
    empty = place("empty")
    refuses(manifest(empty), REFUSED, re.escape(empty))
    refuses(manifest({"site-packages": empty}), REFUSED, re.escape(empty))
    refuses(manifest({"toolkit": empty}), REFUSED, re.escape(empty))


@case("a wheel with files missing: record-mismatch, with the reinstall that mends it")
def _():
    site = site_packages(place("site"), "13.2")
    os.unlink(site + "/nvidia/cu13/bin/ptxas")
    file = manifest({"site-packages": site})
    plan = cudafs_json("plan", file, rc=REFUSED)
    found = [p for p in plan["problems"] if p["code"] == "record-mismatch"]
    check(found and "ptxas" in found[0]["message"], f"problems: {plan['problems']}")
    check(found[0]["fix"] and "nvidia-cuda-nvcc" in found[0]["fix"][0], f"fix: {found[0]['fix']}")
    refuses(file, REFUSED, "record-mismatch", "ptxas")


@case("half an install: a compiler with no cicc and no CCCL")
def _():
    site = site_packages(place("site"), "13.2", ("nvcc", "crt", "runtime"))
    refuses(manifest({"site-packages": site}), REFUSED, "component-missing", "nvvm", r"pip install|uv pip")


@case("a placeholder wheel is named")
def _():
    site = site_packages(place("site"), "13.2", nvvm=None)
    write(site + "/nvidia_nvvm-0.0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: nvidia-nvvm\nVersion: 0.0.1\n")
    write(site + "/nvidia_nvvm-0.0.1.dist-info/RECORD", "nvidia_nvvm-0.0.1.dist-info/METADATA,,\n"
          "nvidia_nvvm-0.0.1.dist-info/RECORD,,\n")
    refuses(manifest({"site-packages": site}), REFUSED, "placeholder-wheel", "nvvm")


@case("an unreadable file")
def _():
    if not ROOT:
        skip("needs root")
    reachable()
    site = site_packages(place("site"), "13.2")
    path = own(site + "/nvidia/cu13/include/cuda.h")
    os.chmod(path, 0)
    file = manifest({"site-packages": site})
    result = as_user([program(), "plan", file])
    check(result.rc in (FAILED, REFUSED), f"exit\n{result}")
    told(result, result.rc, r"cuda\.h", "permission|readable|read")


@case("the mount point is not a directory, does not exist, is not empty")
def _():
    need()
    file = good()
    plain = write(place("x") + "/file", "text")
    told(cudafs("mount", file, plain, rc=None), FAILED, re.escape(plain), "director|folder")
    full = place("full")
    write(full + "/something", "mine")
    told(cudafs("mount", file, full, rc=None), FAILED, re.escape(full), "empty")
    equal(read(full + "/something"), "mine", "the user's file")
    told(cudafs("mount", file, "/proc/nowhere/deep", rc=None), FAILED, "/proc/nowhere")
    equal(mounts_below(work()), [m for m in mounts_below(work()) if "host-toolkit" in m], "mounts")


@case("a mount point whose name holds a line break")
def _():
    where = place("line\nbreak")
    told(cudafs("mount", good(), where, rc=None), USAGE, "line break")
    equal(mounts_below(where), [], "mounts")


@case("a name cannot command the terminal")
def _():
    name = place("dir") + "/\x1b]0;owned\x07.json"
    terminal, end = os.openpty()
    try:
        subprocess.run([program(), "plan", name], stdin=end, stdout=end, stderr=end, env=environment(TERM="xterm"))
        said = os.read(terminal, 65536).decode()
    finally:
        os.close(terminal), os.close(end)
    check("\\x1b]0;owned\\x07" in said and "\x1b]" not in said and "\x07" not in said, repr(said))


@case("someone else has mounted there")
def _():
    need(root=True)
    where = place("busy")
    run(["mount", "-t", "tmpfs", "none", where], rc=0)
    try:
        told(cudafs("mount", good(), where, rc=None), FAILED, re.escape(where), "mount")
        equal(mounts_below(where), [where], "mounts")
        told(cudafs("umount", where, rc=None), FAILED, re.escape(where))
        equal(mounts_below(where), [where], "mounts")
    finally:
        run(["umount", where], rc=0)


@case("another cudafs has mounted another plan there")
def _():
    need()
    with Mount(good()) as mount:
        other = manifest({"site-packages": complete()}, components={"libnvjitlink": {"omit": True}})
        told(cudafs("mount", other, mount.path, rc=None), FAILED, re.escape(mount.path), "reload|umount")
        equal(len(mounts_below(mount.path)), 1, "mounts")
        equal(mount.status()["state"], "healthy", "state")


@case("umount of a busy mount names who uses it and leaves it")
def _():
    need()
    with Mount(good()) as mount:
        user = subprocess.Popen(["sleep", "60"], cwd=mount.path + "/bin")
        try:
            told(cudafs("umount", mount.path, rc=None), FAILED, re.escape(mount.path), "busy|use", "sleep|" + str(user.pid))
            equal(mount.status()["state"], "healthy", "state")
        finally:
            user.kill()
            user.wait()


@case("umount, status, env and explain of a place where nothing is mounted")
def _():
    where = place("nothing")
    for argv in (["umount", where], ["env", where], ["explain", where + "/bin/nvcc"]):
        told(cudafs(*argv, rc=None), FAILED, re.escape(where))
    check(cudafs("status", where, rc=None).rc != 0, "status of nothing succeeded")


@case("a mount whose daemon was killed hard is cleaned away by the next mount")
def _():
    need(root=True)
    file = good()
    where = place("stale")
    cudafs("mount", file, where)
    # Whichever is killed first, the others start again what it was: until none is left.
    while serving := [pid for pid, command in processes().items() if where in command]:
        for pid in serving:
            strike(pid)
    cudafs("mount", file, where)
    check(os.path.exists(where + "/bin/nvcc"), "not usable")
    equal(len(mounts_below(where)), 1, "mounts")
    cudafs("umount", where)
    equal(mounts_below(where), [], "mounts")


@case("no permission for /dev/fuse")
def _():
    need("setpriv", root=True)
    reachable()
    file = good()
    where = place("mount")
    os.chown(where, 65534, 65534)
    with device(0o600):
        told(as_user([program(), "mount", file, where]), FAILED, "/dev/fuse", "permission")
    equal(mounts_below(where), [], "mounts")


@contextmanager
def without(*paths):
    """Lets this test alone see the folder of the paths without them."""
    folder, scratch = os.path.dirname(paths[0]), place("overlay")
    run(["mount", "-t", "tmpfs", "none", scratch], rc=0)
    os.makedirs(scratch + "/up"), os.makedirs(scratch + "/wk")
    run(["mount", "-t", "overlay", "-o", f"lowerdir={folder},upperdir={scratch}/up,workdir={scratch}/wk", "none", folder], rc=0)
    try:
        for path in paths:
            remove(path)
        yield
    finally:
        run(["umount", "-l", folder], rc=0)
        run(["umount", "-l", scratch], rc=0)


@case("no fusermount3")
def _():
    need("setpriv", root=True)
    reachable()
    file = good()
    where = place("mount")
    os.chown(where, 65534, 65534)
    with without("/usr/bin/fusermount3"), device(0o666):
        told(as_user([program(), "mount", file, where]), FAILED, "fusermount3", r"apt|install|fuse3")
    equal(mounts_below(where), [], "mounts")


@case("an ordinary user's umount where fusermount3 has no /etc/mtab, and of somebody else's mount")
def _():
    need("setpriv", "fusermount3", root=True)
    reachable()
    file = good()
    where = place("mount")
    os.chown(where, 65534, 65534)
    with device(0o666):
        as_user([program(), "mount", file, where], rc=0)
        with without("/etc/mtab"):
            told(as_user([program(), "umount", where]), FAILED, re.escape(where), "/etc/mtab", "ln -s")
        told(as_user([program(), "umount", where], uid=65533), FAILED, re.escape(where), "another user")
        equal(mounts_below(where), [where], "mounts")
        as_user([program(), "umount", where], rc=0)
    cudafs("mount", file, where)
    told(as_user([program(), "umount", where]), FAILED, re.escape(where), "mounted by root")
    cudafs("umount", where)


main()
