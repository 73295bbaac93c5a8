#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An ordinary user who may open /dev/fuse mounts through fusermount3, compiles, and unmounts."""

from cudafs_testing import *

UID = 65534


def user_cudafs(*args, rc=0, **options):
    return as_user([program(), *map(str, args)], uid=UID, rc=rc, **options)


@case("mount, status, compile, umount as an ordinary user")
def _():
    need("setpriv", "fusermount3", "g++", root=True)
    reachable()
    file = manifest({"site-packages": site_packages(place("site"), "13.2")}, targets=["sm_120a"])
    where = place("mount")
    folder = place("build")
    for path in (where, folder):
        os.chown(path, UID, UID)
    source = write(folder + "/k.cu", CCCL)
    with device(0o666):
        user_cudafs("mount", file, where)
        equal(mounts_below(where), [where], "mounts")
        as_user([where + "/bin/nvcc", *gencode("sm_120a"), "-c", source, "-o", folder + "/k.o"], uid=UID, rc=0)
        state = json.loads(user_cudafs("status", "--json", where).out)["mounts"]
        equal([(m["path"], m["state"]) for m in state], [(where, "healthy")], "status")
        equal(os.stat(f"/proc/{state[0]['pid']}").st_uid, UID, "owner of the worker")
        report = json.loads(user_cudafs("verify", "--json", where, rc=None, timeout=600).out)
        equal([t for t in report["tests"] if t["status"] not in GREEN], [], "verify")
        user_cudafs("umount", where)
    equal(mounts_below(where), [], "mounts")


@case("another user, root too, does not see into a user's mount unless it was asked for")
def _():
    need("setpriv", "fusermount3", root=True)
    reachable()
    file = manifest({"site-packages": site_packages(place("site"), "13.2")})
    where = place("mount")
    os.chown(where, UID, UID)
    with device(0o666):
        user_cudafs("mount", file, where)
        other = as_user(["ls", where], uid=UID - 1)
        check(other.rc != 0, f"another user could look in:\n{other}")
        user_cudafs("umount", where)
    equal(mounts_below(where), [], "mounts")


main()
