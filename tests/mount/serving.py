#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real kernel mounts through serve_dir: what is served, what it costs, and what survives.

Usage: serving.py SERVE_DIR [NAME...]

CUDAFS_SERVE_DIR names a script that starts SERVE_DIR under valgrind: fewer kills, and more patience.
"""
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cudafs_testing import files_below, held_in_memory, resident, strike

SERVE = os.environ.get("CUDAFS_SERVE_DIR") or os.path.abspath(sys.argv[1])
HANGING = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "hanging_fs")
CHECKED = "CUDAFS_SERVE_DIR" in os.environ
RELOADS, KILLS = (10, 40) if CHECKED else (30, 150)


def skip(why):
    print("SKIP:", why)
    sys.exit(1 if os.environ.get("CUDAFS_MUST_RUN") == "1" else 77)


class Skip(Exception):
    pass


class Lab:
    """A source tree and a mount point, taken down whatever happens."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="cudafs-serving-")
        os.chmod(self.root, 0o755)
        self.source, self.mnt = self.path("source"), self.path("mnt")
        os.mkdir(self.mnt)

    def path(self, *names):
        return os.path.join(self.root, *names)

    def fill(self, dirs, files, word="file", where=None):
        for d in range(dirs):
            base = os.path.join(where or self.source, f"d{d}")
            os.makedirs(base, exist_ok=True)
            for f in range(files):
                with open(os.path.join(base, f"f{f}.h"), "w") as out:
                    out.write(f"{word} {d} {f}\n" * 200)

    def run(self, *args, ok=True, **more):
        done = subprocess.run([SERVE, *args], capture_output=True, text=True, timeout=60, **more)
        if ok:
            assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done

    def mount(self, *options, **more):
        return self.run("mount", *options, self.source, self.mnt, **more)

    def status(self):
        text = self.run("status", self.mnt).stdout
        found = {k: v for k, v in re.findall(r"(\w+)=(\S*)", text)}
        return {k: int(v) if v.isdigit() else v for k, v in found.items()}

    def umount(self, lazy=False):
        return self.run("lazy" if lazy else "umount", self.mnt)

    def close(self):
        while subprocess.run(["umount", "-l", self.mnt], capture_output=True).returncode == 0:
            pass
        shutil.rmtree(self.root, ignore_errors=True)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def read_all(top):
    """Stats, opens and reads everything; a dictionary of digests."""
    found = {}
    for base, _, names in os.walk(top):
        for name in names:
            path = os.path.join(base, name)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = os.readlink(path)
                continue
            os.stat(path)
            with open(path, "rb") as f:
                found[os.path.relpath(path, top)] = hashlib.md5(f.read()).hexdigest()
    return found


def test_content(lab):
    lab.fill(3, 20)
    os.symlink("d0", os.path.join(lab.source, "link"))
    with open(os.path.join(lab.source, "tool"), "wb") as f:
        f.write(os.urandom(3 << 20))
    os.chmod(os.path.join(lab.source, "tool"), 0o754)
    os.makedirs(os.path.join(lab.source, "empty"))
    lab.mount()
    assert read_all(lab.source) == read_all(lab.mnt)
    assert ".cudafs" not in os.listdir(lab.mnt)
    assert sorted(os.listdir(lab.mnt + "/.cudafs")) == ["gate", "id"]
    tool, real = os.stat(lab.mnt + "/tool"), os.stat(lab.source + "/tool")
    assert tool.st_mode == 0o100555 and tool.st_uid == 0 and tool.st_size == real.st_size
    assert tool.st_mtime_ns == real.st_mtime_ns
    assert os.stat(lab.mnt + "/d0/f0.h").st_mode == 0o100444
    assert os.stat(lab.mnt + "/d1").st_mtime_ns == max(
        os.stat(f"{lab.source}/d1/f{i}.h").st_mtime_ns for i in range(20))
    for attempt in (lambda: open(lab.mnt + "/new", "w"), lambda: os.unlink(lab.mnt + "/tool"),
                    lambda: os.mkdir(lab.mnt + "/d"), lambda: os.chmod(lab.mnt + "/tool", 0o777)):
        try:
            attempt()
            assert False, "the mount is writable"
        except OSError as e:
            assert e.errno == 30, e
    before = {n: os.stat(f"{lab.mnt}/{n}").st_ino for n in ("tool", "d0", "d0/f1.h")}
    lab.umount()
    lab.mount()
    assert before == {n: os.stat(f"{lab.mnt}/{n}").st_ino for n in before}


def use_all(lab):
    for i in range(50):
        assert not os.path.exists(f"{lab.mnt}/d1/absent{i}")
    return read_all(lab.mnt)


def test_warm_is_silent(lab):
    lab.fill(20, 100)
    lab.mount()
    asks = ("lookup", "getattr", "open", "opendir", "read", "readdir", "readdirplus", "readlink")
    first = use_all(lab)
    for _ in range(20):
        files = files_below(lab.mnt)
        pages = sum(-(-os.path.getsize(f) // os.sysconf("SC_PAGESIZE")) for f in files)
        with held_in_memory(files):
            whole, before = resident(files) == pages, lab.status()
            assert use_all(lab) == first
            after = lab.status()
        if whole:
            asked = {k: after[k] - before[k] for k in asks}
            assert not any(asked.values()), asked
            return
    assert False, "the kernel gave up cached pages each time"


def test_wrong_identity(lab):
    lab.fill(1, 3)
    lab.mount("-b")
    try:
        open(lab.mnt + "/d0/f0.h").read()
        assert False, "bytes of another file were served"
    except OSError as e:
        assert e.errno == 5, e
    assert lab.status()["drift"] >= 1


def test_changed_in_place(lab):
    lab.fill(1, 3)
    lab.mount()
    with open(lab.source + "/d0/f0.h", "r+") as f:
        f.write("CHANGED")
    try:
        text = open(lab.mnt + "/d0/f0.h").read()
        assert False, text[:20]
    except OSError as e:
        assert e.errno == 5, e
    assert lab.status()["drift"] == 1


def test_replaced_is_pinned(lab):
    lab.fill(2, 50)
    old = read_all(lab.source)
    lab.mount()
    for i in range(50):
        with open(lab.path("new"), "w") as f:
            f.write("new content")
        os.replace(lab.path("new"), f"{lab.source}/d0/f{i}.h")
        os.unlink(f"{lab.source}/d1/f{i}.h")
    assert read_all(lab.mnt) == old
    assert lab.status()["drift"] == 0


def test_few_descriptors(lab):
    lab.fill(4, 100)
    limited = ["bash", "-c", 'ulimit -n 128; exec "$0" "$@"', SERVE, "mount", lab.source, lab.mnt]
    subprocess.run(limited, check=True, timeout=60)
    s = lab.status()
    assert s["pinned"] < s["files"] == 400, s
    with open(lab.path("new"), "w") as f:
        f.write("new")
    for d in range(4):
        for i in range(100):
            shutil.copy(lab.path("new"), lab.path("n"))
            os.replace(lab.path("n"), f"{lab.source}/d{d}/f{i}.h")
    served = refused = 0
    for d in range(4):
        for i in range(100):
            try:
                assert open(f"{lab.mnt}/d{d}/f{i}.h").read() == f"file {d} {i}\n" * 200
                served += 1
            except OSError as e:
                assert e.errno == 5, e
                refused += 1
    s = lab.status()
    assert served == s["pinned"] and refused == s["drift"] == 400 - served, (served, refused, s)


class Readers:
    """Threads that read everything again and again, cold, and compare."""

    def __init__(self, top, expected, count=3):
        self.top, self.expected, self.stop = top, expected, False
        self.errors, self.reads = [], 0
        self.threads = [threading.Thread(target=self.work) for _ in range(count)]
        for t in self.threads:
            t.start()

    def work(self):
        names = list(self.expected)
        while not self.stop:
            name = random.choice(names)
            try:
                with open(os.path.join(self.top, name), "rb") as f:
                    if hashlib.md5(f.read()).hexdigest() != self.expected[name]:
                        self.errors.append((name, "wrong bytes"))
                if random.random() < 0.02:
                    os.listdir(os.path.dirname(os.path.join(self.top, name)))
            except OSError as e:
                self.errors.append((name, e))
            self.reads += 1

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()
        assert not self.errors, self.errors[:5]


def drop_caches():
    try:
        with open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3")
    except OSError:
        pass


def test_worker_killed(lab):
    lab.fill(10, 100)
    lab.mount()
    readers = Readers(lab.mnt, read_all(lab.source))
    for i in range(KILLS):
        worker = lab.status()["worker"]
        if worker:
            strike(worker)
        if i % 3 == 0:
            drop_caches()
        time.sleep(random.uniform(0.004, 0.03))
    readers.end()
    s = lab.status()
    assert s["restarts"] >= KILLS // 2 and readers.reads > 500, (s, readers.reads)
    print(f"    {s['restarts']} restarts, {readers.reads} reads", end=" ")


def test_worker_stopped(lab):
    lab.fill(2, 20)
    lab.mount()
    worker = lab.status()["worker"]
    os.kill(worker, signal.SIGSTOP)
    start = time.monotonic()
    assert read_all(lab.mnt) == read_all(lab.source)
    assert lab.status()["worker"] != worker
    print(f"    mended after {time.monotonic() - start:.1f} s", end=" ")


def test_deadly_request(lab):
    """A request that three workers die of is answered EIO; others are not affected."""
    if not os.path.exists(HANGING):
        raise Skip("needs hanging_fs beside serve_dir")
    os.mkdir(lab.source)
    with open(lab.source + "/good", "w") as f:
        f.write("good")
    below = lab.path("source", "below")
    os.mkdir(below)
    hanging = subprocess.Popen([HANGING, "-f", "-o", "attr_timeout=1000,entry_timeout=1000", below])
    assert wait_for(lambda: os.path.ismount(below))
    reader = None
    try:
        lab.mount()
        reader = subprocess.Popen(["cat", lab.mnt + "/below/file"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True)
        # The kernel reads ahead first, and asks a second time for what that did not bring.
        for deaths in range(7):
            worker = lab.status()["worker"]
            time.sleep(0.2)
            if deaths % 3 == 0 and deaths and wait_for(lambda: reader.poll() is not None, 1):
                break
            assert reader.poll() is None
            assert open(lab.mnt + "/good").read() == "good"
            strike(worker)
            assert wait_for(lambda: lab.status()["worker"] not in (0, worker))
        assert "Input/output error" in reader.communicate(timeout=10)[1]
        assert open(lab.mnt + "/good").read() == "good"
    finally:
        if reader:
            reader.kill()
        subprocess.run(["umount", "-l", lab.mnt], check=True)
        hanging.kill()
        hanging.wait()
        subprocess.run(["umount", "-l", below], check=True)


def test_reload(lab):
    lab.fill(5, 40, "old")
    lab.mount("-l", "one")
    old = read_all(lab.source)
    assert read_all(lab.mnt) == old
    ids = {n: os.stat(f"{lab.mnt}/{n}").st_ino for n in ("d0/f0.h", ".cudafs/gate")}
    held = open(lab.mnt + "/d0/f0.h")
    gate = open(lab.mnt + "/.cudafs/gate")
    assert not os.path.exists(lab.mnt + "/extra")
    second = lab.path("second")
    shutil.copytree(lab.source, second)
    lab.fill(2, 40, "new", second)
    with open(second + "/extra", "w") as f:
        f.write("extra")
    shutil.rmtree(second + "/d4")
    done = lab.run("reload", "-l", "two", second, lab.mnt)
    assert done.stdout == "generation 2\n", done
    assert read_all(lab.mnt) == read_all(second)
    assert sorted(os.listdir(lab.mnt)) == sorted(os.listdir(second))
    assert held.read() == "old 0 0\n" * 200
    assert lab.status()["label"] == "two" and lab.status()["restarts"] == 0
    assert os.fstat(gate.fileno()).st_ino == os.stat(lab.mnt + "/.cudafs/gate").st_ino == ids[".cudafs/gate"]
    held.close()
    gate.close()


def test_reload_keeps_open_files(lab):
    lab.fill(2, 50)
    lab.mount()
    read_all(lab.mnt)
    held = [open(f"{lab.mnt}/d0/f{i}.h") for i in range(50)]
    before = lab.status()["read"]
    lab.run("reload", lab.source, lab.mnt)
    for i, f in enumerate(held):
        # The same inode with the same pages: what runs from the old tree and what the new one serves are one.
        assert os.fstat(f.fileno()).st_ino == os.stat(f"{lab.mnt}/d0/f{i}.h").st_ino
        assert f.read() == open(f"{lab.mnt}/d0/f{i}.h").read()
        f.close()
    assert lab.status()["read"] - before <= 2, lab.status()


def test_reload_is_atomic(lab):
    second = lab.path("second")
    lab.fill(1, 1, "aaa")
    lab.fill(1, 1, "bbb", second)
    lab.mount()
    seen, stop = [], []

    def watch():
        while not stop:
            with open(lab.mnt + "/d0/f0.h") as f:
                seen.append(f.read())

    threads = [threading.Thread(target=watch) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(RELOADS):
        lab.run("reload", second if i % 2 == 0 else lab.source, lab.mnt)
        want = ("bbb" if i % 2 == 0 else "aaa") + " 0 0\n"
        assert open(lab.mnt + "/d0/f0.h").read() == want * 200
    stop.append(1)
    for t in threads:
        t.join()
    assert set(seen) == {"aaa 0 0\n" * 200, "bbb 0 0\n" * 200}, set(s[:20] for s in seen)
    s = lab.status()
    assert s["generation"] == RELOADS + 1, s
    drop_caches()
    assert wait_for(lambda: lab.status()["held"] <= 3), lab.status()


def test_reload_refuses_rubbish(lab):
    lab.fill(1, 2)
    lab.mount()
    rubbish = (
        "import sys,os,socket,struct,glob\n"
        "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.connect(sys.argv[1])\n"
        "a=os.memfd_create('x'); os.write(a,b'z'*4096)\n"
        "socket.send_fds(s,[struct.pack('=IIQ',0x31534643,2,4)],[a,a])\n"
        "r=s.recv(65536); print(struct.unpack('=Ii',r[:8])[1])\n")
    dev = os.stat(lab.mnt).st_dev
    control = f"/run/cudafs/{os.major(dev)}:{os.minor(dev)}/control"
    done = subprocess.run([sys.executable, "-c", rubbish, control], capture_output=True, text=True, timeout=30)
    assert done.stdout == "-22\n", done
    assert lab.status()["generation"] == 1
    assert read_all(lab.mnt) == read_all(lab.source)


def test_umount_leaves_nothing(lab):
    lab.fill(2, 10)
    lab.mount()
    s = lab.status()
    dev = os.stat(lab.mnt).st_dev
    state = f"/run/cudafs/{os.major(dev)}:{os.minor(dev)}"
    assert os.path.isdir(state)
    read_all(lab.mnt)
    lab.umount()
    if CHECKED:  # valgrind knows no pidfd_open, without which umount cannot wait for the keeper
        wait_for(lambda: not os.path.exists(state) and not alive(s["keeper"]))
    assert not alive(s["keeper"]) and not alive(s["worker"]) and not os.path.exists(state)
    assert lab.run("probe", lab.mnt).stdout == "none \n"
    assert os.listdir(lab.mnt) == []


def test_umount_busy(lab):
    lab.fill(1, 2)
    lab.mount()
    with open(lab.mnt + "/d0/f0.h") as f:
        done = lab.run("umount", lab.mnt, ok=False)
        assert done.returncode == 1 and f"({os.getpid()})" in done.stderr, done
        keeper = lab.status()["keeper"]
        lab.umount(lazy=True)
        assert f.read() == "file 0 0\n" * 200
    assert wait_for(lambda: not alive(keeper))


def test_signal_unmounts(lab):
    lab.fill(1, 2)
    lab.mount()
    keeper = lab.status()["keeper"]
    os.kill(keeper, signal.SIGTERM)
    assert wait_for(lambda: not alive(keeper))
    assert lab.run("probe", lab.mnt).stdout == "none \n"


def test_foreground(lab):
    lab.fill(1, 2)
    p = subprocess.Popen([SERVE, "mount", "-f", lab.source, lab.mnt], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    assert read_all(lab.mnt) == read_all(lab.source)
    p.send_signal(signal.SIGINT)
    assert p.wait(10) == 0
    assert lab.run("probe", lab.mnt).stdout == "none \n"


def kill_all(s):
    for name in ("spare", "keeper", "worker"):
        if s[name]:
            strike(s[name])


def test_keeper_killed(lab):
    lab.fill(10, 100)
    lab.mount()
    assert wait_for(lambda: lab.status()["spare"]), lab.status()
    first = lab.status()
    readers = Readers(lab.mnt, read_all(lab.source))
    for i in range(20):
        s = lab.status()
        victims = [["keeper"], ["keeper", "worker"], ["spare"], ["worker", "keeper"]][i % 4]
        for name in victims:
            if s[name]:
                strike(s[name])
        if i % 3 == 0:
            drop_caches()
        assert wait_for(lambda: lab.status()["spare"] not in (0, s["spare"])), (i, s, lab.status())
    readers.end()
    s = lab.status()
    assert s["keeper"] != first["keeper"] and s["label"] == "first", s
    lab.run("reload", "-l", "two", lab.source, lab.mnt)
    os.kill(lab.status()["keeper"], signal.SIGKILL)
    assert wait_for(lambda: lab.status()["spare"]), lab.status()
    assert lab.status()["generation"] == 2 and lab.status()["label"] == "two"
    assert read_all(lab.mnt) == read_all(lab.source)
    s = lab.status()
    lab.umount()
    left = [n for n in ("keeper", "worker", "spare") if not wait_for(lambda n=n: not alive(s[n]))]
    assert not left, (left, s)
    print(f"    {s['restarts']} restarts, {readers.reads} reads", end=" ")


def test_killed_during_reloads(lab):
    second = lab.path("second")
    lab.fill(3, 30, "aaa")
    lab.fill(3, 30, "bbb", second)
    lab.mount()
    stop = []

    def kill_at_random():
        while not stop:
            time.sleep(random.uniform(0.02, 0.15))
            s = lab.run("status", lab.mnt, ok=False).stdout
            name = random.choice(["worker", "worker", "keeper", "spare"])
            found = re.search(rf"\b{name}=([1-9]\d*)", s)
            if found and re.search(r"\bspare=[1-9]", s):
                try:
                    strike(int(found.group(1)))
                except ProcessLookupError:
                    pass

    killer = threading.Thread(target=kill_at_random)
    killer.start()
    done = 0
    try:
        for i in range(40):
            r = lab.run("reload", second if i % 2 == 0 else lab.source, lab.mnt, ok=False)
            done += r.returncode == 0
            text = open(lab.mnt + "/d0/f0.h").read()
            assert set(text.splitlines()) in ({"aaa 0 0"}, {"bbb 0 0"}), text[:40]
            if r.returncode == 0:
                assert text.startswith("bbb" if i % 2 == 0 else "aaa"), (i, text[:40])
            for d in range(3):
                words = {open(f"{lab.mnt}/d{d}/f{f}.h").read(3) for f in range(30)}
                assert len(words) == 1, words
    finally:
        stop.append(1)
        killer.join()
    assert done >= 20, done
    print(f"    {done} of 40 reloads", end=" ")


def test_dead_mount(lab):
    lab.fill(1, 2)
    lab.mount()
    s = lab.status()
    kill_all(s)
    assert wait_for(lambda: lab.run("probe", lab.mnt).stdout.startswith("dead")), lab.run("probe", lab.mnt)
    done = lab.run("status", lab.mnt, ok=False)
    assert done.returncode == 1 and "label=first" in done.stdout, done
    lab.mount()
    assert read_all(lab.mnt) == read_all(lab.source)
    kill_all(lab.status())
    time.sleep(0.1)
    lab.umount()
    assert lab.run("probe", lab.mnt).stdout == "none \n"


def test_refusals(lab):
    lab.fill(1, 2)
    for args, words in ((["-o", "rw"], "always ro"), (["-o", "bogus=1"], "bogus"), (["-o", "passthrough"], "reserved"),
                        (["-o", "threads=0"], "threads")):
        done = lab.mount(*args, ok=False)
        assert done.returncode == 1 and words in done.stderr, done
    with open(lab.mnt + "/something", "w"):
        pass
    assert "not empty" in lab.mount(ok=False).stderr
    os.unlink(lab.mnt + "/something")
    lab.mount()
    assert "already" in lab.mount(ok=False).stderr
    assert lab.run("mount", lab.source, lab.path("absent"), ok=False).returncode == 1
    assert lab.run("mount", lab.source, os.path.join(lab.source, "d0/f0.h"), ok=False).returncode == 1


def test_bind_mount(lab):
    lab.fill(1, 2)
    lab.mount("-l", "bound")
    other = lab.path("other")
    os.mkdir(other)
    subprocess.run(["mount", "--bind", lab.mnt, other], check=True)
    try:
        done = lab.run("status", other)
        assert "label=bound" in done.stdout
        lab.run("reload", "-l", "again", lab.source, other)
        assert lab.status()["label"] == "again"
        assert "label=again" in lab.run("status", other + "/d0").stdout
    finally:
        subprocess.run(["umount", other], check=True)


def test_flock_is_local(lab):
    import fcntl
    lab.fill(1, 1)
    lab.mount()
    with open(lab.mnt + "/.cudafs/gate") as a, open(lab.mnt + "/.cudafs/gate") as b:
        before = lab.status()["total"] - lab.status()["statfs"]
        fcntl.flock(a, fcntl.LOCK_EX)
        try:
            fcntl.flock(b, fcntl.LOCK_SH | fcntl.LOCK_NB)
            assert False, "two exclusive owners"
        except BlockingIOError:
            pass
        assert lab.status()["total"] - lab.status()["statfs"] == before


def test_warm_up(lab):
    lab.fill(1, 1)
    size = 4 << 20
    with open(lab.source + "/tool", "wb") as f:
        f.write(os.urandom(size))
    tool, pages = lab.mnt + "/tool", size // os.sysconf("SC_PAGESIZE")
    for _ in range(20):
        lab.mount("-w", "tool")
        assert wait_for(lambda: lab.status()["bytes_read"] >= size), lab.status()
        wait_for(lambda: resident([tool]) == pages, 2)
        with held_in_memory([tool]):
            whole, before = resident([tool]) == pages, lab.status()["read"]
            assert open(tool, "rb").read() == open(lab.source + "/tool", "rb").read()
            asked = lab.status()["read"] - before
        lab.umount()
        # Only the whole of it counts: a page that the kernel gave up before it was held would be asked for again.
        if whole:
            assert not asked, asked
            return
    assert False, "the kernel never held the whole of the warmed file"


def test_daemon_is_detached(lab):
    lab.fill(1, 1)
    lab.mount()
    assert wait_for(lambda: lab.status()["spare"])
    s = lab.status()
    for pid in (s["keeper"], s["worker"], s["spare"]):
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        for fd in range(3):
            assert os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null"
        fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not any(f.startswith(lab.mnt) for f in fds), fds
    with open(f"/proc/{s['worker']}/status") as f:
        text = f.read()
    assert re.search(r"NoNewPrivs:\s+1", text)
    with open(SERVE, "rb") as f:
        instrumented = b"__asan_init" in f.read()  # a sanitizer needs system calls that the filter forbids
    assert instrumented or re.search(r"Seccomp:\s+2", text), text


def main():
    if os.geteuid() != 0:
        skip("needs root")
    if not os.path.exists("/dev/fuse"):
        skip("needs /dev/fuse")
    tests = [(n[5:], f) for n, f in globals().items() if n.startswith("test_")]
    chosen = sys.argv[2:]
    failed = 0
    for name, test in tests:
        if chosen and name not in chosen:
            continue
        lab = Lab()
        start = time.monotonic()
        try:
            test(lab)
            print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Skip as e:
            failed += os.environ.get("CUDAFS_MUST_RUN") == "1"
            print(f"skip {name}: {e}", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL {name}: {type(e).__name__}: {e}", flush=True)
            if os.environ.get("TRACE"):
                import traceback
                traceback.print_exc()
        finally:
            lab.close()
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
