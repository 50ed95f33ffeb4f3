"""How each library's measuring program is started, at its best."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

CONTROL_BYTES = 16384  # at least sizeof(ControlPage)

# MPI libraries allocate scratch memory in every reduction; without this the C library gives it back
# to the system each time, and every call would pay for the page faults.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "4294967296",
               "MALLOC_TOP_PAD_": "268435456"}

OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
           "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-np", "{ranks}"]
NO_COPY = ["--mca", "btl_vader_single_copy_mechanism", "none"]
SHARED = ["--mca", "coll_sm_priority", "100"]


@dataclass
class Peer:
    library: str
    config: str
    launcher: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)
    package: str = ""

    @property
    def name(self):
        return f"{self.library}/{self.config}"


def chosen_huge_pages():
    try:
        with open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", encoding="ascii") as file:
            words = file.read().split()
        return next((word.strip("[]") for word in words if word.startswith("[")), "unknown")
    except OSError:
        return "unknown"


def penstock_peers(options):
    kinds = ["pool", "private"] if options.buffers == "both" else [options.buffers]
    ways = ["hardware", "software"] if options.coherence == "both" else [options.coherence]
    for coherence in ways:
        for buffers in kinds:
            if coherence == "software" and buffers == "private" and len(kinds) == 2:
                continue  # what it adds to either alone
            config = buffers if coherence == "hardware" else f"{buffers}-software"
            yield Peer("penstock", config,
                       environment={"BENCH_BUFFERS": buffers, "PENSTOCK_COHERENCE": coherence,
                                    "PENSTOCK_LOG": "error"})


def other_peers():
    mpich = ["mpirun.mpich", "-np", "{ranks}"]
    polls = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1000"}
    return [
        Peer("openmpi", "cma", OPENMPI, package="libopenmpi-dev"),
        Peer("openmpi", "nocma", OPENMPI + NO_COPY, package="libopenmpi-dev"),
        Peer("openmpi", "sm", OPENMPI + SHARED, package="libopenmpi-dev"),
        Peer("mpich", "cma", mpich, {**polls, "UCX_TLS": "posix,cma,self"}, "mpich libmpich-dev"),
        Peer("mpich", "nocma", mpich, {**polls, "UCX_TLS": "posix,self"}, "mpich libmpich-dev"),
        Peer("gloo", "tcp", package="libgloo-dev"),
    ]


def choose(options):
    """The peers to run, and [name, why not] of the others."""
    chosen, missed = list(penstock_peers(options)), []
    limit = Peer("limit", "shared", package="a processor with AVX2")
    for peer in other_peers() + [limit]:
        if peer is not limit and not options.peers.search(peer.name):
            continue
        if peer.library == "gloo" and options.quick:
            missed.append([peer.name, "it takes a third of a second a point; not with --quick"])
            continue
        program = os.path.join(options.programs, peer.library)
        if not os.access(program, os.X_OK):
            missed.append([peer.name, f"it was not built; it needs {peer.package}"])
        elif peer.launcher and not shutil.which(peer.launcher[0]):
            missed.append([peer.name, f"there is no {peer.launcher[0]}; it comes with "
                                      f"{peer.package}"])
        else:
            chosen.append(peer)
    return chosen, missed


def skipped(peer, ranks, options):
    """Why a peer that was chosen is not run with so many ranks, or None."""
    if options.quick and peer.library == "mpich" and ranks > len(os.sched_getaffinity(0)):
        return "it spins with more ranks than CPUs, and takes long; not with --quick"
    return None


class Runner:
    """Starts programs, and removes what they would leave. A context manager."""

    def __init__(self, options, say):
        self.options = options
        self.say = say
        self.failures = []
        self.stopped = []  # [peer, what was not measured]
        self.folder = tempfile.mkdtemp(prefix="penstock-bench-", dir="/dev/shm")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def _arguments(self, peer, ranks, control, out):
        options = self.options
        return ["--ranks", str(ranks), "--peer", peer.library, "--config", peer.config,
                "--collectives", ",".join(options.collectives), "--types", ",".join(options.types),
                "--sizes", ",".join(map(str, options.sizes)), "--samples", str(options.samples),
                "--sample-ms", str(options.sample_ms), "--point-ms", str(options.point_ms),
                "--realtime", "1" if options.realtime else "0", "--control", control, "--out", out]

    def run(self, peer, ranks):
        """The rows of one program."""
        control = os.path.join(self.folder, "control")
        out = os.path.join(self.folder, "rows")
        meeting = tempfile.mkdtemp(dir=self.folder)
        with open(control, "wb") as file:
            file.truncate(CONTROL_BYTES)
        with open(out, "wb"):
            pass
        launcher = [word.format(ranks=ranks) for word in peer.launcher]
        program = os.path.join(self.options.programs, peer.library)
        environment = {**os.environ, **KEEP_MEMORY, **peer.environment, "BENCH_FOLDER": meeting}
        if launcher and launcher[0] == "mpirun.openmpi":
            launcher += [word for name in KEEP_MEMORY for word in ("-x", name)]
            if ranks > len(os.sched_getaffinity(0)):
                launcher += ["--mca", "mpi_yield_when_idle", "1"]
        command = launcher + [program] + self._arguments(peer, ranks, control, out)
        self._execute(peer.name, ranks, command, environment)
        with open(out, encoding="ascii") as file:
            return [json.loads(line) for line in file if line.endswith("}\n")]

    def _execute(self, name, ranks, command, environment):
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            _, errors = process.communicate(timeout=self.options.program_seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            # What it had measured counts.
            status, errors = 0, ""
            self.stopped.append([f"{name}, {ranks} ranks",
                                 f"the rest, after {self.options.program_seconds} s"])
            self.say(f"{name} was stopped after {self.options.program_seconds} s")
        finally:
            # A launcher that is interrupted must not leave its ranks behind.
            try:
                os.killpg(process.pid, signal.SIGTERM if process.poll() is None else signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()
        if status not in (0, 1):
            last = errors.strip().splitlines()[-1:] or [""]
            self.failures.append(f"{name}, {ranks} ranks: exit status {status}: {last[0]}")
            self.say(f"FAILED: {self.failures[-1]}")

    def flushes(self):
        """Lines written back and invalidated per call under software coherence."""
        program = os.path.join(self.options.programs, "flushes")
        found = []
        for ranks in self.options.ranks:
            result = subprocess.run(
                [program, str(ranks), ",".join(self.options.collectives),
                 ",".join(map(str, self.options.sizes))],
                capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
            if result.returncode != 0:
                self.failures.append(f"flushes, {ranks} ranks: {result.stderr.strip()[-300:]}")
                self.say(f"FAILED: {self.failures[-1]}")
            found += [json.loads(line) for line in result.stdout.splitlines()]
        return found
