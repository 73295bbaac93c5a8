#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mixes that pip makes on its own are refused by name, and the printed repair works when it is pasted."""

from cudafs_testing import *

MIXES = {
    "headers-release-mismatch": dict(release="13.2", runtime="13.0"),
    "compiler-unit-split": dict(release="13.0", nvvm="13.2"),
}


def problem(plan, code):
    found = [p for p in plan["problems"] if p["code"] == code]
    check(found, f"no {code} among {[p['code'] for p in plan['problems']]}")
    return found[0]


def paste(commands, folder):
    """Runs the printed commands as a user would: a shell, the usual PATH, pip's usual settings."""
    env = dict(environment(), HOME=os.path.expanduser("~"), PIP_ROOT_USER_ACTION="ignore",
               PIP_FIND_LINKS=" ".join(glob.glob(CACHE + "/wheels/*-[0-9]*[0-9]/")))
    return run(["sh", "-c", "\n".join(["set -e", *commands])], env=env, cwd=folder, timeout=900)


for code, mix in MIXES.items():

    @case(f"{code}: refused with exit 3, and mount leaves nothing")
    def _(code=code, mix=mix):
        need()
        file = manifest({"site-packages": site_packages(place("site"), **mix)})
        plan = cudafs_json("plan", file, rc=3)
        equal(plan["verdict"], "refused", "verdict")
        found = problem(plan, code)
        check(found["severity"] and found["component"] and found["message"], f"a field is empty: {found}")
        check(found["fix"], f"no fix: {found}")
        told = cudafs("plan", file, rc=3)
        for command in found["fix"]:
            check(command in told.text, f"the fix is not in what people read: {command}\n{told}")
        where = place("mount")
        told = cudafs("mount", file, where, rc=3)
        check(told.err.startswith("cudafs: ") and code in told.err, f"mount says:\n{told}")
        equal(mounts_below(where), [], "mounts")

    @case(f"{code}: the printed fix, pasted, makes the venv coherent and verify green", timeout=1200)
    def _(code=code, mix=mix):
        need("g++")
        where = place("venv", make=False)
        file = manifest({"site-packages": venv(where, **mix)}, targets=TARGETS[:2])
        fix = problem(cudafs_json("plan", file, rc=3), code)["fix"]
        pasted = paste(fix, place("elsewhere"))
        check(pasted.rc == 0, f"the fix failed:\n{pasted}")
        plan = cudafs_json("plan", file, rc=None)
        equal(plan["verdict"], "coherent", f"after\n{pasted}\n{json.dumps(plan['problems'], indent=1)}\nverdict")
        with Mount(file) as mount:
            mount.verify(*TARGETS[:2])

    @case(f"{code}: with a complete 13.0 toolkit beside the venv, 13.0 is mounted and green", timeout=1200)
    def _(mix=mix):
        need("g++")
        broken = site_packages(place("site"), **mix)
        toolkit = make_toolkit("13.0", place("cuda-13.0"))
        file = manifest({"id": "venv", "site-packages": broken}, {"id": "system", "toolkit": toolkit}, targets=TARGETS[:2])
        equal(cudafs_json("plan", file)["release"], "13.0", "release")
        with Mount(file) as mount:
            mount.verify(*TARGETS[:2])
            equal(cudafs_json("explain", mount.path + "/nvvm/bin/cicc")["source"], "system", "source of cicc")


@case("policy.allow lowers the named problem to a warning that stays in the plan")
def _():
    file = manifest({"site-packages": site_packages(place("site"), "13.2", crt="13.3")})
    code = cudafs_json("plan", file, rc=3)["problems"][0]["code"]
    equal(code, "compiler-unit-split", "code")
    file = manifest({"site-packages": json.loads(read(file))["sources"][0]["site-packages"]}, policy={"allow": [code]})
    plan = cudafs_json("plan", file)
    check(problem(plan, code)["severity"] == "warning", f"severity: {plan['problems']}")


@case("a release that the sources do not hold is refused, and the message says which they hold")
def _():
    file = manifest({"site-packages": site_packages(place("site"), "13.2")}, release="13.5")
    told = cudafs("plan", file, rc=3)
    check("13.5" in told.text and "13.2" in told.text, f"plan says:\n{told}")


@case("a target that the release does not know is refused: target-unsupported")
def _():
    file = manifest({"site-packages": site_packages(place("site"), "13.0")}, targets=["sm_107a"])
    problem(cudafs_json("plan", file, rc=3), "target-unsupported")


@case("cu12 wheels are named for what they are: no nvcc in them")
def _():
    site = place("site")
    for component in ("nvcc", "runtime"):
        link_tree(installed("12.9", component), site)
    problem(cudafs_json("plan", manifest({"site-packages": site}), rc=3), "wheel-has-no-compiler")


main()
