# SPDX-License-Identifier: MIT
"""What the mount and peer tests share: isolation, real wheels, mounts, TAP.

A test is a Python file of cases:

    from cudafs_testing import *

    @case("lib64 is a link inside the mount")
    def _():
        check(os.readlink(f"{mounted().path}/lib64") == "targets/x86_64-linux/lib", "lib64 leads elsewhere")

    main()

As root, main() runs the cases in a mount and PID namespace of their own: what the host has of
CUDA under /usr/local is hidden there, and neither a mount nor a daemon can outlive the test.

Environment:
    CUDAFS_BIN         the program under test (meson sets it)
    CUDAFS_PROGRAM     the program itself, where CUDAFS_BIN is a script that starts it under valgrind
    CUDAFS_REPORTS     where that writes what it finds
    CUDAFS_TEST_CACHE  wheels, venvs and root file systems, kept between runs (~/.cache/cudafs-tests)
    CUDAFS_MUST_RUN    "1": what cannot run fails instead of being skipped
    CUDAFS_TEST_QUICK  "1": fewer releases and targets (for the slow builds: sanitizers, valgrind)
"""

import atexit
import ctypes
import fcntl
import functools
import glob
import json
import mmap
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack, contextmanager

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.abspath(os.environ.get("CUDAFS_TEST_CACHE") or os.path.expanduser("~/.cache/cudafs-tests"))
MUST_RUN = os.environ.get("CUDAFS_MUST_RUN") == "1"
QUICK = os.environ.get("CUDAFS_TEST_QUICK") == "1"
ROOT = os.geteuid() == 0
PLATFORM = "sbsa-linux" if platform.machine() == "aarch64" else platform.machine() + "-linux"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TARGETS = ["sm_120a"] if QUICK else ["sm_120a", "sm_120f", "sm_121a", "sm_100a", "sm_90a"]

GREEN = ("ok", "pass", "passed")

_isolated = os.environ.get("CUDAFS_TEST_ISOLATED") == "1"
_fixtures = ExitStack()
_cases = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def fail(message):
    raise Failure(message)


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(got, want, what):
    if got != want:
        raise Failure(f"{what}: got {got!r}, want {want!r}")


def skip(why):
    """Leaves the case: skipped, or failed where everything must run."""
    raise (Failure if MUST_RUN else Skip)(why)


def need(*tools, root=False):
    for tool in tools:
        if not shutil.which(tool, path=PATH):
            skip(f"needs {tool}")
    if root and not ROOT:
        skip("needs root")
    if not os.path.exists("/dev/fuse"):
        skip("needs /dev/fuse")


# ---- programs ----


class Result:
    def __init__(self, argv, rc, out, err, seconds):
        self.argv, self.rc, self.out, self.err, self.seconds = argv, rc, out, err, seconds

    @property
    def text(self):
        return self.out + self.err

    def __str__(self):
        command = " ".join(self.argv) if isinstance(self.argv, (list, tuple)) else self.argv
        tail = "\n".join(self.text.strip().splitlines()[-40:])
        return f"$ {command}\n{tail}\n(exit {self.rc}, {self.seconds:.1f} s)"


def environment(**more):
    """A clean environment: nothing of the caller's that could lead a program to another CUDA."""
    home = os.path.join(work(), "home")
    runtime = os.path.join(work(), "run")
    for folder in (home, runtime):
        os.makedirs(folder, mode=0o755, exist_ok=True)
    kept = ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "CUDAFS_DATA", "CUDAFS_DISPATCH", "CUDAFS_PROGRAM", "TMPDIR", "CUDAFS_TEST_CACHE", "TZ")
    env = {k: v for k, v in os.environ.items() if k in kept or k.startswith("PIP_") or k.lower().endswith("_proxy")}
    env.update(PATH=PATH, HOME=home, LC_ALL="C.UTF-8", XDG_RUNTIME_DIR=runtime)
    env.update({k: v for k, v in more.items() if v is not None})
    return env


def run(argv, rc=None, env=None, cwd=None, timeout=300, stdin=None, preexec=None):
    """Runs argv (a list, or a shell line) to its end; with rc, fails unless it exits with it."""
    shell = isinstance(argv, str)
    start = time.monotonic()
    # A daemon must not keep the pipes open after its parent returned, so output goes to files.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv, shell=shell, stdout=out, stderr=err, env=env or environment(), cwd=cwd or work(),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, preexec_fn=preexec,
            start_new_session=True)
        try:
            process.communicate(stdin.encode() if isinstance(stdin, str) else stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            out.seek(0), err.seek(0)
            fail(f"no end after {timeout} s: {argv}\n{out.read()[-2000:].decode(errors='replace')}"
                 f"{err.read()[-2000:].decode(errors='replace')}")
        out.seek(0), err.seek(0)
        text = [f.read().decode(errors="replace") for f in (out, err)]
    result = Result(argv, process.returncode, *text, time.monotonic() - start)
    if rc is not None and result.rc != rc:
        fail(f"expected exit {rc}\n{result}")
    return result


def program():
    """The cudafs under test."""
    path = os.environ.get("CUDAFS_BIN") or os.path.join(SOURCE, "build", "cli", "cudafs")
    if not os.access(path, os.X_OK):
        fail(f"no program to test: {path} (set CUDAFS_BIN)")
    return os.path.abspath(path)


def built(path):
    """What the build of the program under test made at path."""
    real = os.path.abspath(os.environ.get("CUDAFS_PROGRAM") or program())
    return os.path.join(os.path.dirname(os.path.dirname(real)), path)


def cudafs(*args, rc=0, **options):
    return run([program(), *map(str, args)], rc=rc, **options)


def cudafs_json(*args, rc=0, **options):
    result = cudafs(*args, "--json", rc=rc, **options)
    try:
        return json.loads(result.out)
    except ValueError as error:
        fail(f"not one JSON object ({error}):\n{result}")


def as_user(argv, uid=65534, **options):
    """Runs argv as an ordinary user: no capability, no group."""
    home = os.path.join(work(), f"home-{uid}")
    runtime = os.path.join(work(), f"run-{uid}")
    for folder in (home, runtime):
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700)
            os.chown(folder, uid, uid)
    env = dict(options.pop("env", None) or environment(), HOME=home, XDG_RUNTIME_DIR=runtime, USER="nobody")
    return run(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *argv], env=env, **options)


def reachable():
    """Makes sure that an ordinary user can run the program: a copy of it, where a checkout is private."""
    # Through a shell, as setpriv itself may still look into folders that its user may not.
    data = os.environ.get("CUDAFS_DATA") or os.path.join(SOURCE, "manifests", "data")
    if as_user(["sh", "-c", '"$0" --version && ls "$1"', program(), data]).rc == 0:
        return
    copy = os.path.join(work(), "program")
    shutil.copytree(os.path.join(SOURCE, "manifests", "data"), copy + "/data")
    shutil.copy(program(), copy + "/started")
    shutil.copy(built("cli/cudafs"), copy + "/cudafs")
    shutil.copy(built("overlays/dispatch/dispatch"), copy + "/dispatch")
    os.environ.update(CUDAFS_BIN=copy + "/started", CUDAFS_PROGRAM=copy + "/cudafs", CUDAFS_DATA=copy + "/data",
                      CUDAFS_DISPATCH=copy + "/dispatch")
    run(["chmod", "-R", "a+rX", copy], rc=0)
    as_user(["sh", "-c", '"$0" --version', program()], rc=0)


@contextmanager
def device(mode):
    """Covers /dev/fuse, for this test alone, with the same device in another mode."""
    folder = os.path.join(work(), "dev")
    os.makedirs(folder, exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], rc=0)
    try:
        os.mknod(folder + "/fuse", stat.S_IFCHR | mode, os.makedev(10, 229))
        os.chmod(folder + "/fuse", mode)
        run(["mount", "--bind", folder + "/fuse", "/dev/fuse"], rc=0)
        try:
            yield
        finally:
            run(["umount", "-l", "/dev/fuse"], rc=0)
    finally:
        run(["umount", "-l", folder], rc=0)


# ---- places ----


@functools.lru_cache(None)
def work():
    """This test's own folder; others may read it. Removed at the end."""
    path = tempfile.mkdtemp(prefix="cudafs-test-")
    os.chmod(path, 0o755)
    owner = os.getpid()

    def remove():
        if os.getpid() == owner:
            for mount in mounts_below(path):
                subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL)
            if not mounts_below(path):
                shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path


_count = 0


def place(name="dir", make=True):
    """A new, empty folder of this test (or, with make=False, just its name)."""
    global _count
    _count += 1
    path = os.path.join(work(), f"{_count:02d}-{name}")
    if make:
        os.makedirs(path)
    return path


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text if isinstance(text, str) else json.dumps(text, indent=1) + "\n")
    return path


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def files_below(top, suffix=""):
    """Every file or socket below top whose name ends so, hidden folders included."""
    return [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(suffix)]


def resident(files):
    """How many pages of the files the kernel holds. Some machines page idle ones out (as memory.reclaim does) without
    counting it as a drop; those must be read again, whatever file system they are of."""
    pages = 0
    for i in range(0, len(files), 500):
        told = subprocess.run(["fincore", "-n", "-o", "PAGES", *files[i:i + 500]], capture_output=True, text=True, check=True)
        pages += sum(map(int, told.stdout.split()))
    return pages


@contextmanager
def held_in_memory(files):
    """Keeps the kernel from giving up the pages that it holds of the files; brings in no others."""
    libc = ctypes.CDLL(None, use_errno=True)
    lock_on_fault, size, maps = 1, mmap.PAGESIZE, []
    try:
        for name in files:
            if os.path.islink(name) or not os.path.isfile(name) or not os.path.getsize(name):
                continue
            with open(name, "rb") as f:
                maps.append(mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
            held = maps[-1]
            pages = (len(held) + size - 1) // size
            there = (ctypes.c_ubyte * pages)()
            anchor = ctypes.c_char.from_buffer(held)
            start = ctypes.c_void_p(ctypes.addressof(anchor))
            told = libc.mincore(start, ctypes.c_size_t(len(held)), there) or \
                libc.mlock2(start, ctypes.c_size_t(len(held)), lock_on_fault)
            del anchor
            assert not told, f"{name}: {os.strerror(ctypes.get_errno())}; ulimit -l unlimited"
            for page in range(pages):
                if there[page] & 1:
                    held[page * size]
        yield
    finally:
        for held in maps:
            held.close()


def mounts_below(path):
    """Mount points at or below path, innermost first."""
    found = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            point = re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split()[4])
            if point == path or point.startswith(path + "/"):
                found.append(point)
    return found[::-1]


def processes():
    """{pid: command line} of every live process that this test can see, itself aside."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in (os.getpid(), 1):
            continue
        try:
            state = read(f"/proc/{entry}/stat").rsplit(")", 1)[1].split()[0]
            command = read(f"/proc/{entry}/cmdline").replace("\0", " ").strip()
        except OSError:
            continue
        if state != "Z" and command:
            found[int(entry)] = command
    return found


def strike(pid):
    """Kills what may have ended since its number was read."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_for(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            fail(f"not within {seconds} s: {what}")
        time.sleep(0.05)


@contextmanager
def cache_entry(name):
    """Yields (path, ready) under a lock; what a test makes at path.part becomes path at the end."""
    path = os.path.join(CACHE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path):
            yield path, True
            return
        part = path + ".part"
        remove(part)
        yield part, False
        os.rename(part, path)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


# ---- wheels ----

WHEELS = {
    "nvcc": "nvidia-cuda-nvcc", "crt": "nvidia-cuda-crt", "nvvm": "nvidia-nvvm", "runtime": "nvidia-cuda-runtime",
    "cccl": "nvidia-cuda-cccl", "nvrtc": "nvidia-cuda-nvrtc", "nvjitlink": "nvidia-nvjitlink",
    "culibos": "nvidia-cuda-culibos", "cupti": "nvidia-cuda-cupti", "nvml": "nvidia-nvml-dev",
    "profiler": "nvidia-cuda-profiler-api", "curand": "nvidia-curand", "nvtx": "nvidia-nvtx",
}
COMPILER = ("nvcc", "crt", "nvvm", "runtime", "cccl", "nvrtc", "nvjitlink")


@functools.lru_cache(None)
def pins():
    """{release: (toolkit, {wheel: version})} of each release's newest metapackage, from the project's data."""
    path = os.path.join(os.environ.get("CUDAFS_DATA") or os.path.join(SOURCE, "manifests", "data"), "pins.tsv")
    found = {}
    for line in read(path).splitlines():
        if line.startswith("#") or not line.strip():
            continue
        toolkit, _, wheel, number = line.split("\t")[:4]
        release = ".".join(toolkit.split(".")[:2])
        # Rows ascend within a release, so the newest metapackage is the last to be read.
        if found.get(release, ("",))[0] != toolkit:
            found[release] = (toolkit, {})
        found[release][1][wheel] = number
    return found


def requirement(release, component):
    """What pip is asked for: "nvidia-cuda-nvcc==13.2.86". A range is taken at its lower bound."""
    wheels = pins()[release][1]
    name = WHEELS[component]
    name = name if name in wheels else name + "-cu12"
    return f"{name}=={wheels[name]}.*"


def version(release, component):
    return requirement(release, component).split("==")[1].removesuffix(".*")


def toolkit_version(release):
    """The newest toolkit of a release, "13.2.2"."""
    return ".".join(pins()[release][0].split(".")[:3])


def host_python():
    """A Python with pip whose packages do not lie in what isolation hides."""
    for python in ("/usr/bin/python3", sys.executable):
        probe = [python, "-c", "import pip, venv, ensurepip"]
        if os.access(python, os.X_OK) and not subprocess.run(probe, stderr=subprocess.DEVNULL).returncode:
            return python
    skip("needs python3 with pip and venv (Debian: python3-pip python3-venv)")


def pip(*args, python=None, timeout=1200, **options):
    env = dict(environment(), HOME=os.path.expanduser("~"), PIP_DISABLE_PIP_VERSION_CHECK="1",
               PIP_ROOT_USER_ACTION="ignore")
    return run([python or host_python(), "-m", "pip", *args], rc=0, env=env, timeout=timeout, **options)


def wheel(release, component):
    """The wheel file, downloaded once."""
    spec = requirement(release, component)
    entry = "wheels/" + spec.replace("==", "-").removesuffix(".*")
    with cache_entry(entry) as (path, ready):
        if not ready:
            os.makedirs(path)
            pip("download", "-q", "--no-deps", "-d", path, spec)
    (file,) = glob.glob(os.path.join(CACHE, entry, "*.whl"))
    return file


def installed(release, component):
    """One wheel as pip leaves it, in a folder of its own."""
    file = wheel(release, component)
    with cache_entry("sites/" + os.path.basename(file).removesuffix(".whl")) as (path, ready):
        if not ready:
            pip("install", "-q", "--no-deps", "--no-compile", "--target", path, file)
    return os.path.join(CACHE, "sites", os.path.basename(file).removesuffix(".whl"))


def link_tree(source, dest):
    """Merges source into dest by hard links, as uv installs; by copies on another file system."""
    for folder, _, files in os.walk(source):
        target = os.path.normpath(os.path.join(dest, os.path.relpath(folder, source)))
        os.makedirs(target, exist_ok=True)
        for name in files:
            link_file(os.path.join(folder, name), os.path.join(target, name))


def link_file(source, dest):
    os.makedirs(os.path.dirname(dest), exist_ok=True)
    if os.path.lexists(dest):
        return
    try:
        os.link(source, dest, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, dest, follow_symlinks=False)


def chosen(release, components, also=(), **swaps):
    """{component: release}: the release's compiler set with some of it swapped or (None) left out."""
    want = {c: release for c in (*components, *also)}
    want.update(swaps)
    return {c: r for c, r in want.items() if r}


def site_packages(dest, release, components=COMPILER, also=(), **swaps):
    """A site-packages of real wheels: site_packages(d, "13.2", runtime="13.0", cccl=None)."""
    os.makedirs(dest, exist_ok=True)
    for component, of in chosen(release, components, also, **swaps).items():
        link_tree(installed(of, component), dest)
    return dest


def venv(dest, release, components=COMPILER, also=(), **swaps):
    """A real venv into which pip installed the wheels. Returns its site-packages."""
    run([host_python(), "-m", "venv", dest], rc=0)
    files = [wheel(of, c) for c, of in chosen(release, components, also, **swaps).items()]
    pip("install", "-q", "--no-deps", "--no-compile", *files, python=dest + "/bin/python")
    (site,) = glob.glob(dest + "/lib/python3*/site-packages")
    return site


def own(path):
    """Gives path an inode of its own before a test changes it (the cache shares hard links)."""
    with open(path, "rb") as f:
        data = f.read()
    mode = os.stat(path).st_mode
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, stat.S_IMODE(mode))
    return path


# ---- a toolkit in the runfile layout, made of the same payload ----

_TOOLKIT_PROFILE = """
TOP              = $(_HERE_)/..

CICC_PATH        = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice

LD_LIBRARY_PATH += $(TOP)/lib:
PATH            += $(CICC_PATH):$(_HERE_):

INCLUDES        +=  "-I$(TOP)/$(_TARGET_DIR_)/include" $(_SPACE_)
SYSTEM_INCLUDES +=  "-isystem" "$(TOP)/$(_TARGET_DIR_)/include/cccl" $(_SPACE_)

LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)/stubs" \
"-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)"

CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
"""


def _toolkit_path(path):
    """Where the runfile puts what a wheel has at nvidia/cu13/PATH."""
    target = "targets/" + PLATFORM
    if path == "include/nvvm.h":
        return "nvvm/include/nvvm.h"
    if path.startswith("lib/libnvvm.so"):
        return "nvvm/lib64/" + path[4:]
    if re.match(r"(include|lib)/.*cupti", path):
        return "extras/CUPTI/" + re.sub("^lib/", "lib64/", path)
    moved = re.match(r"(?:cuda_cccl/|cccl/)?(lib/cmake/.*)", path)
    if moved:
        return f"{target}/{moved[1]}"
    return f"{target}/{path}" if path.startswith(("include/", "lib/")) else path


def make_toolkit(release, dest, omit=(), components=COMPILER, also=("culibos",)):
    """Lays dest out as the runfile installer does, from the wheels of one release."""
    for component in (*components, *also):
        if component in omit:
            continue
        payload = installed(release, component) + "/nvidia/cu13"
        for folder, _, files in os.walk(payload):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), payload)
                link_file(os.path.join(folder, name), os.path.join(dest, _toolkit_path(path)))
    for name, target in (("include", f"targets/{PLATFORM}/include"), ("lib64", f"targets/{PLATFORM}/lib")):
        if os.path.isdir(os.path.join(dest, target)):
            os.symlink(target, os.path.join(dest, name))
    for library in glob.glob(f"{dest}/targets/{PLATFORM}/lib/*.so.*") + glob.glob(f"{dest}/nvvm/lib64/*.so.*"):
        plain = re.sub(r"\.so\..*", ".so", library)
        if not os.path.lexists(plain):
            os.symlink(os.path.basename(library), plain)
    profile = f"{dest}/bin/nvcc.profile"
    if os.path.exists(profile):
        os.unlink(profile)
        write(profile, _TOOLKIT_PROFILE)
    write(f"{dest}/version.json", {
        "cuda": {"name": "CUDA SDK", "version": toolkit_version(release)},
        **{f"cuda_{c}": {"name": c, "version": version(release, c)} for c in ("nvcc", "cudart") if c in WHEELS}})
    return dest


# ---- mounts ----


def manifest(*sources, name="manifest.json", **keys):
    """Writes a manifest into a folder of this test; returns its path."""
    return write(os.path.join(place("manifest"), name), {"cudafs": 1, "sources": list(sources), **keys})


class Mount:
    """A mount for the length of a with block; at its end nothing may be left."""

    def __init__(self, *manifest, path=None, options=(), runner=cudafs):
        self.manifest = [str(m) for m in manifest]
        self.path = path or place("mount")
        self.options, self.runner = list(options), runner

    def __enter__(self):
        self.runner("mount", *self.options, *self.manifest, self.path)
        check(self.path in mounts_below(self.path), f"mount returned, but nothing is mounted at {self.path}")
        return self

    def __exit__(self, kind, value, trace):
        if kind:  # the case failed already: clean up and let its own message speak
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL)
            return
        served = [self.status().get(k) for k in ("pid", "keeper")]
        self.runner("umount", self.path)
        equal(mounts_below(self.path), [], "mounts left after umount")
        wait_for(lambda: not any(p and alive(p) for p in served), f"processes {served} to end after umount")

    def status(self):
        for mount in cudafs_json("status", self.path, rc=None)["mounts"]:
            if mount["path"] == self.path:
                return mount
        fail(f"status does not list {self.path}")

    def requests(self):
        return self.status()["requests"]

    def env(self, **more):
        m = self.path
        return environment(CUDA_HOME=m, CUDA_PATH=m, CUDA_ROOT=m, CUDAToolkit_ROOT=m, CUDACXX=m + "/bin/nvcc",
                           LD_LIBRARY_PATH=m + "/lib64", **{**more, "PATH": f"{m}/bin:{more.get('PATH', PATH)}"})

    def tool(self, name, *args, **options):
        return run([f"{self.path}/bin/{name}", *map(str, args)], **options)

    def verify(self, *targets):
        """Runs verify; fails unless every test passed and each of targets was among them."""
        report = cudafs_json("verify", self.path, rc=None, timeout=1500)
        bad = [t for t in report["tests"] if t["status"] not in GREEN]
        check(not bad, "verify is not green:\n" + json.dumps(bad, indent=1))
        seen = {t["target"] for t in report["tests"]}
        check(set(targets) <= seen, f"verify tried {sorted(map(str, seen))}, not all of {targets}")
        return report


def alive(pid):
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def once(function):
    """Remembers what function returned or raised, for each of its arguments: cases share it, good or bad."""
    known = {}

    @functools.wraps(function)
    def get(*args):
        if args not in known:
            try:
                known[args] = (function(*args), None)
            except Exception as error:
                known[args] = (None, error)
        value, error = known[args]
        if error:
            raise error
        return value

    return get


def fixture(function):
    """A context manager function, entered once on first use and left when the cases are done."""
    return once(lambda *args: _fixtures.enter_context(contextmanager(function)(*args)))


# ---- programs to compile ----

PLAIN = """#include <cuda_runtime.h>
#include <cuda_fp16.h>
__global__ void add(const float *a, float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += __expf(a[i]) + sinf(a[i]);
}
int main() { float *p = nullptr; cudaMalloc(&p, 4); add<<<1, 1>>>(p, p, 1); return cudaDeviceSynchronize() == -1; }
"""
CCCL = """#include <cuda/std/type_traits>
#include <cuda_runtime.h>
__global__ void k(int *p) { p[0] = cuda::std::is_same<int, int>::value; }
"""
CUB = """#include <cub/block/block_reduce.cuh>
__global__ void sum(const int *in, int *out) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage storage;
  int total = Reduce(storage).Sum(in[threadIdx.x]);
  if (threadIdx.x == 0) *out = total;
}
"""


def gencode(target):
    return ["-gencode", f"arch={target.replace('sm_', 'compute_')},code={target}"]


def ptx(release_or_version, target="sm_120a"):
    """The smallest PTX module of that ISA version."""
    return f".version {release_or_version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


# ---- running ----


def case(name, timeout=900):
    def register(function):
        _cases.append((name, function, timeout))
        return function

    return register


def _run_case(number, name, function, timeout):
    def late(*_):
        raise Failure(f"case did not end within {timeout} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(timeout)
    start = time.monotonic()
    try:
        function()
        verdict, note = f"ok {number} - {name}", ""
    except Skip as why:
        verdict, note = f"ok {number} - {name} # SKIP {why}", ""
    except Failure as why:
        verdict, note = f"not ok {number} - {name}", str(why)
    except Exception:
        verdict, note = f"not ok {number} - {name}", "".join(traceback.format_exc(chain=False).splitlines(True)[-12:])
    finally:
        signal.alarm(0)
    print(verdict)
    print(f"# {time.monotonic() - start:.1f} s")
    for line in note.splitlines():
        print("# " + line)
    sys.stdout.flush()
    return verdict.startswith("ok")


def _leave_nothing():
    _fixtures.close()
    while host_toolkit():
        subprocess.run(["umount", work() + "/host-toolkit"], check=True)
    equal(mounts_below(work()), [], "mounts left behind")
    if _isolated:  # all processes that we see are our own
        wait_for(lambda: not processes(), "every process started by the cases to end")
    places = [os.path.join(work(), name) for name in os.listdir(work()) if name.startswith("run")]
    state = [f for place in places + (["/run/cudafs"] if _isolated else []) for f in files_below(place)]
    equal(state, [], "state files left behind")


def isolated():
    """Re-runs this test in mount and PID namespaces of its own, with a scrubbed environment."""
    os.environ["CUDAFS_TEST_ISOLATED"] = "1"
    for name in list(os.environ):
        if re.match(r"CUDA_|CUDACXX|.*LIBRARY_PATH$|.*INCLUDE_PATH$|CPATH$|NVCC_", name):
            del os.environ[name]
    os.environ["PATH"] = PATH
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation",
                          "private", os.path.realpath(sys.executable), os.path.abspath(sys.argv[0]), *sys.argv[1:]])


def _hide_host_cuda():
    """Covers what the host has of CUDA under /usr/local; its toolkit, if any, stays as host_toolkit()."""
    toolkits = [d for d in sorted(glob.glob("/usr/local/cuda*")) if os.path.isdir(d) and not os.path.islink(d)]
    for toolkit in toolkits:
        if os.access(toolkit + "/bin/nvcc", os.X_OK):
            os.makedirs(work() + "/host-toolkit", exist_ok=True)
            subprocess.run(["mount", "--bind", toolkit, work() + "/host-toolkit"], check=True)
    # A Python that itself lives in /usr/local needs its lib; such a machine has no stray CUDA there.
    hide = ["/usr/local/include", "/usr/local/lib"] if sys.base_prefix != "/usr/local" else []
    for folder in hide + toolkits:
        if os.path.isdir(folder) and not os.path.islink(folder):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)


def _private_state():
    """Gives this namespace its own folder of mount states, so that what is left there is ours."""
    os.makedirs("/run/cudafs", mode=0o755, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run/cudafs"], check=True)


def host_toolkit():
    """The host's own toolkit at a place where it is not hidden, or None."""
    path = work() + "/host-toolkit"
    return path if os.path.exists(path + "/bin/nvcc") else None


def _reap():
    """PID 1 of the namespace: starts the test as its child and buries the daemons' orphans."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            sys.stdout.flush()
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def main():
    """Runs the cases, prints TAP, exits 1 when one failed. An argument picks cases by a part of the name."""
    if ROOT and not _isolated:
        isolated()
    if _isolated and os.getpid() == 1:
        _reap()
        _hide_host_cuda()
        _private_state()
    os.environ.pop("CUDAFS_TEST_ISOLATED", None)
    wanted = [c for c in _cases if not sys.argv[1:] or any(a in c[0] for a in sys.argv[1:])]
    wanted.append(("nothing is left mounted, running or written", _leave_nothing, 120))
    print(f"1..{len(wanted)}")
    sys.stdout.flush()
    good = [_run_case(i + 1, *c) for i, c in enumerate(wanted)]
    sys.stdout.flush()
    sys.exit(0 if all(good) else 1)
