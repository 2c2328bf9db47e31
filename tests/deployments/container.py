"""Builds the file system of the container from the steps of `Containerfile` in a fresh Debian folder, and runs it there
as docs/hosting.md says: ``python -m tests.deployments.container [--folder FOLDER] [--keep]``, as root.

It needs debootstrap, and takes packages from where apt and pip of this machine take theirs. It runs without a network,
with a root that is read-only, as a user without rights, and within the memory and the processes of the documented
command; then come the health check, a comparison, and the link of its run, as the server shows it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.browser import ROOT

HEALTHY_S, ENDED_S = 120.0, 20.0
COMPARISON = ["python", "-m", "measure", "compare", "square", "--strategies", "map_fn.graph,batched.graph"]
COMPARISON += ["--budget", "3", "--json", "-"]
# Asks the server for the link of a run, from within.
_LINK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8501/?run={run}', timeout=20).read().decode())"


@dataclass
class Image:
    """A folder with what a container holds, and how it is run."""

    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    )
    arguments: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "root"
    volumes: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Containerfile with what follows each."""
    whole = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    for line in filter(None, (line.strip() for line in whole.splitlines())):
        name, _, rest = line.partition(" ")
        yield name.upper(), rest.strip()


# --- build -----------------------------------------------------------------------------------------------------------


def build(containerfile: Path, root: Path, given: Mapping[str, str]) -> Image:
    """Follow the instructions in a folder, which may not be there yet. ``given``: values of ARG."""
    image = Image(root)
    for name, rest in instructions(containerfile.read_text(encoding="utf-8")):
        begun = time.monotonic()
        _follow(image, name, rest, containerfile.parent, given)
        _say(f"{time.monotonic() - begun:6.1f} s  {name} {rest[:90]}")
    return image


def _follow(image: Image, name: str, rest: str, context: Path, given: Mapping[str, str]) -> None:
    match name:
        case "FROM":
            suite = rest.rpartition(":")[2].removesuffix("-slim")
            subprocess.run(["debootstrap", "--variant=minbase", suite, str(image.root), _mirror()], check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip
        case "RUN":
            with _packages_of_this_machine(image.root) as environment:
                _chroot(image, ["/bin/sh", "-c", rest], environment)
        case "COPY":
            *sources, target = shlex.split(rest)
            into = image.root / Path(image.folder, target).relative_to("/")
            for source in sources:
                _copy(context / source, into, alone=len(sources) == 1 and not target.endswith("/"))
        case "ARG":
            key, _, default = rest.partition("=")
            image.arguments[key] = given.get(key, default)
        case "ENV":
            image.environment |= dict(part.split("=", 1) for part in shlex.split(rest))
        case "WORKDIR":
            image.folder = rest
            (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            image.user = rest
        case "VOLUME":
            image.volumes.append(rest)
        case "HEALTHCHECK":
            image.health = json.loads(rest[rest.index("[") :])
        case "ENTRYPOINT":
            image.entrypoint = json.loads(rest)
        case "CMD":
            image.command = json.loads(rest)
        case "EXPOSE":
            pass
        case _:
            raise ValueError(f"{name} is not known here: {rest}")


def _copy(source: Path, into: Path, *, alone: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, into if alone and not into.is_dir() else into / source.name)


def _mirror() -> str:
    """The address from which apt of this machine takes Debian."""
    form = "$(SITE) $(RELEASE)"
    said = subprocess.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], check=True,
                          capture_output=True, text=True).stdout  # fmt: skip
    sites = [line.split()[0] for line in said.splitlines() if line.split()[0].endswith("/debian")]
    if not sites:
        raise RuntimeError("apt of this machine knows no archive of Debian")
    return sites[0]


@contextmanager
def _packages_of_this_machine(root: Path) -> Iterator[dict[str, str]]:
    """What a step needs to get packages as this machine does: the settings of its pip, with the files that they name.
    Nothing of it stays in the folder."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True)
    settings = dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)
    words = [word.strip("'\"").removeprefix("file://") for value in settings.values() for word in value.split()]
    # An index refers to the files beside it.
    named = sorted({Path(word).parent if word.endswith("/simple") else Path(word) for word in words if word[:1] == "/"})
    environment = {}
    with ExitStack() as mounts:
        places = {}
        for number, path in enumerate(path for path in named if path.exists()):
            place = places[str(path)] = f"/run/packages/{number}"
            target = root / place.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.mkdir() if path.is_dir() else target.touch()
            _mount("--bind", str(path), str(target))
            mounts.callback(_unmount, target)
        for name in ("proc", "dev"):
            _mount("--rbind", f"/{name}", str(root / name))
            mounts.callback(_unmount, root / name)
        for key, value in settings.items():
            for path, place in places.items():
                value = value.replace(path, place)
            environment["PIP_" + key.rpartition(".")[2].replace("-", "_").upper()] = value.strip("'\"")
        yield environment
    shutil.rmtree(root / "run/packages", ignore_errors=True)


def _unmount(target: Path) -> None:
    subprocess.run(["umount", "--recursive", str(target)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
    if arguments[0] == "--rbind":
        subprocess.run(["mount", "--make-rslave", arguments[-1]], check=True)


def _chroot(image: Image, words: Sequence[str], environment: Mapping[str, str]) -> None:
    command = ["chroot", str(image.root), "/bin/sh", "-c", f'cd {shlex.quote(image.folder)} && exec "$@"', "-", *words]
    known = {**image.environment, **image.arguments, **environment, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=True, env=known, stdout=subprocess.DEVNULL)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- run -------------------------------------------------------------------------------------------------------------


def documented() -> dict[str, str]:
    """The options of the command that runs the container, as docs/hosting.md has it; its last word is the image."""
    text = (ROOT / "docs/hosting.md").read_text(encoding="utf-8")
    found = re.search(r"^podman run (.*?)(?<!\\)$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise RuntimeError("docs/hosting.md has no «podman run …»")
    options = re.findall(r"--([a-z-]+)(?:[ =]([^-\s\\][^\s\\]*))?", found[1])
    return dict(options)


# Runs in name spaces of its own, as root, before the program does: $1 is the image, $2 the folder of the volume, $3 the
# volume's place, $4 the size of /tmp, $5 the user; the rest is the program.
_INSIDE = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs -o size="$4",mode=1777 tmpfs "$1/tmp"
mount -t tmpfs tmpfs "$1/dev"
for name in null zero random urandom; do touch "$1/dev/$name"; mount --bind "/dev/$name" "$1/dev/$name"; done
mkdir "$1/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount --bind "$2" "$1$3"
root=$1 user=$5
shift 5
exec /usr/sbin/chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all /bin/sh -c 'cd "$1" && shift && exec "$@"' - "$FOLDER" "$@"
"""


@contextmanager
def running(image: Image, options: Mapping[str, str], folder: Path) -> Iterator[int]:
    """The container's program, started with the documented limits; the number of its init on this machine."""
    data = folder / "data"
    data.mkdir()
    shutil.chown(data, 10001, 10001)
    (volume,) = image.volumes
    groups = _groups(options)
    command = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child"]
    size = options["tmpfs"].partition("size=")[2]
    command += ["/bin/sh", "-c", _INSIDE, "-", str(image.root), str(data), volume, size, image.user]
    command += [*image.entrypoint, *image.command]
    known = {**image.environment, "FOLDER": image.folder}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=known, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=lambda: [(group / "cgroup.procs").write_text(str(os.getpid())) for group in groups],
        )  # fmt: skip
    init = None
    try:
        init = _init_of(process)
        yield init
        os.kill(init, signal.SIGTERM)
        process.wait(ENDED_S)
    finally:
        if init is not None and process.poll() is None:
            os.kill(init, signal.SIGKILL)  # and with it all of its name space
        process.wait()
        for group in groups:
            group.rmdir()


def _groups(options: Mapping[str, str]) -> list[Path]:
    """Control groups with the documented limits; none of a kind that this machine has not."""
    limits = {
        ("memory", "memory.limit_in_bytes"): options["memory"].upper().removesuffix("B"),
        ("pids", "pids.max"): options["pids-limit"],
    }
    groups = []
    for (kind, name), value in limits.items():
        group = Path("/sys/fs/cgroup", kind, f"mapbench-{os.getpid()}")
        try:
            group.mkdir()
            (group / name).write_text(value)
        except OSError as error:
            _say(f"without a limit of {kind}: {error}")
        else:
            groups.append(group)
    return groups


def _init_of(process: "subprocess.Popen[bytes]") -> int:
    """The first process within the new name space of process numbers."""
    while process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise RuntimeError(f"the container ended with status {process.returncode}")


def execute(image: Image, init: int, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command beside the container's program, as the same user."""
    enter = [
        "nsenter",
        "--target",
        str(init),
        "--mount",
        "--pid",
        "--ipc",
        "--net",
        "/usr/sbin/chroot",
        str(image.root),
    ]
    enter += ["setpriv", f"--reuid={image.user}", f"--regid={image.user}", "--clear-groups", "--no-new-privs"]
    enter += ["--bounding-set=-all", "/bin/sh", "-c", f'cd {image.folder} && exec "$@"', "-", *words]
    return subprocess.run(enter, env=image.environment, capture_output=True, text=True, check=False)


def _with_loopback(init: int) -> None:
    """Without a network there is still the machine itself: its interface is down in a new name space."""
    subprocess.run(["nsenter", "--target", str(init), "--net", sys.executable, "-c", (
        "import fcntl, socket, struct; s = socket.socket(); "
        "fcntl.ioctl(s, 0x8914, struct.pack('16sh', b'lo', 1))"
    )], check=True)  # fmt: skip


def tried(image: Image, options: Mapping[str, str], folder: Path) -> list[str]:
    """Run the container, and what is said of it; a line for each promise. Raises where one is not kept."""
    lines = []
    begun = time.monotonic()
    with running(image, options, folder) as init:
        _with_loopback(init)
        while execute(image, init, image.health).returncode:
            if time.monotonic() - begun > HEALTHY_S or not Path(f"/proc/{init}").exists():
                raise RuntimeError(f"not healthy after {HEALTHY_S:.0f} s:\n{(folder / 'log').read_text()}")
            time.sleep(0.5)
        lines.append(f"healthy after {time.monotonic() - begun:.1f} s")
        for place in ("/opt/mapbench/x", "/x", "/usr/x"):
            if execute(image, init, ["touch", place]).returncode == 0:
                raise RuntimeError(f"{place} could be written")
        lines.append("the root is read-only, and the program has no rights:" + _rights(image, init))
        begun = time.monotonic()
        done = execute(image, init, COMPARISON)
        if done.returncode:
            raise RuntimeError(f"the comparison failed:\n{done.stderr}\n{(folder / 'log').read_text()}")
        run = json.loads(done.stdout)
        lines.append(f"comparison after {time.monotonic() - begun:.1f} s: {run['verdict']}")
        page = execute(image, init, ["python", "-c", _LINK.format(run=run["id"])]).stdout
        (about,) = re.findall(r'<meta name="description" content="([^"]*)"', page)
        if about != run["verdict"]:
            raise RuntimeError(f"the server says of the run: {about}")
        lines.append("its link says the same")
    lines.append("ended by SIGTERM, no process left")
    if "Traceback" in (log := (folder / "log").read_text()):
        raise RuntimeError(log)
    return lines


def _rights(image: Image, init: int) -> str:
    status = execute(image, init, ["grep", "-E", "^(Uid|CapEff|CapBnd|NoNewPrivs)", "/proc/self/status"]).stdout
    return " " + "; ".join(" ".join(line.split()[:2]) for line in status.splitlines())


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to build; a temporary folder otherwise")
    parser.add_argument("--keep", action="store_true", help="leave the folder, or take it as it was built before")
    asked = parser.parse_args(words)
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="mapbench-container-"))
    root = folder / "root"
    shutil.rmtree(folder / "data", ignore_errors=True)
    options = documented()
    begun = time.monotonic()
    if not (asked.keep and root.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        image = build(ROOT / "Containerfile", root, {})
        size = int(
            subprocess.run(["du", "-sm", str(root)], capture_output=True, text=True, check=True).stdout.split()[0]
        )
        print(f"built in {time.monotonic() - begun:.0f} s, {size:,} MiB")
    else:
        image = Image(root)
        for name, rest in instructions((ROOT / "Containerfile").read_text(encoding="utf-8")):
            if name not in ("FROM", "RUN"):
                _follow(image, name, rest, ROOT, {})
    try:
        print("\n".join(tried(image, options, folder)))
    finally:
        if not asked.keep:
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
