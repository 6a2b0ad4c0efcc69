"""DLIO's training patterns and checkpoints, with the times of its I/O: eeio.json.

    workload.py probe
    workload.py generate|run workload=unet3d|resnet50|cosmoflow|checkpoint accelerator=h100|a100
                files=N record=BYTES deviation=BYTES readers=N epochs=N checkpoint=BYTES
                folder=FOLDER output=FOLDER [eeio=FILE]

Runs with the Python of DLIO's environment. DLIO (dlio_benchmark 2.0.0) reads, computes (it sleeps
as long as the accelerator would take) and writes checkpoints; this program calls it, notes the
CLOCK_MONOTONIC at the edges of DLIO's blocks and checkpoints, and restores the checkpoints, which
DLIO 2.0.0 does not. Data sets leave the page cache before each epoch, checkpoints before they are
restored. Bytes are those of the files; bytes fetched are the kernel's account (/proc/PID/io) of
this process and of DLIO's readers.
"""

import ctypes
import importlib.metadata
import json
import multiprocessing
import os
import signal
import sys
import time
import types
from contextlib import suppress
from pathlib import Path

FORMATS = {"unet3d": "npz", "resnet50": "jpeg", "cosmoflow": "npz", "checkpoint": "npz"}
VERSION = "2.0.0"
PAGE_BYTES = 4096
PR_SET_PDEATHSIG = 1
# DLIO's samples/s and ours may differ by this, and bytes fetched from those of the files.
AGREEMENT, FETCHED, AGAIN = 0.01, 0.98, 1.02


class DlioError(Exception):
    """DLIO did not do what it was asked for; one line."""


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Untraced:
    """In place of DFTracer's decorators, with which DLIO can trace itself: they do nothing."""

    def __init__(self, *_, **__):
        pass

    def log(self, function):
        return function

    log_init = log_static = log

    def iter(self, items, **_):
        return items

    def update(self, **_):
        pass

    flush = reset = update

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def dlio():
    """DLIO's main module, without a tracer, and without TensorFlow, which a profiler imports that
    is not used here."""
    stand_in("dlio_benchmark.profiler.tf_profiler", TFProfiler=None)
    stand_in("dftracer")
    stand_in("dftracer.logger", dftracer=None, dft_fn=Untraced, DFTRACER_ENABLE=False)
    try:
        version = importlib.metadata.version("dlio_benchmark")
        from dlio_benchmark import main
        from dlio_benchmark.data_loader import torch_data_loader  # noqa: F401
    except ImportError as error:
        raise DlioError(f"DLIO cannot be started: {error}; run `eeio setup --ai`") from error
    if version != VERSION:
        raise DlioError(f"DLIO is of version {version}; install dlio_benchmark {VERSION}")
    return main


def checkpointing():
    """A mechanism for DLIO: PyTorch's, with random bytes (DLIO's own are zeros) and with fsync."""
    import torch
    from dlio_benchmark.checkpointing.pytorch_checkpointing import PyTorchCheckpointing

    class Durable(PyTorchCheckpointing):
        instance = None

        @staticmethod
        def get_instance():
            Durable.instance = Durable.instance or Durable()
            return Durable.instance

        def get_tensor(self, size):
            return torch.randint(-128, 128, (size,), dtype=torch.int8)

        def save_state(self, suffix, state):
            with Path(self.get_name(suffix)).open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())

        def checkpoint(self, epoch, step_number):
            super().checkpoint(epoch, step_number)
            flush(self.args.checkpoint_folder)

    Durable.__module__, Durable.__qualname__ = "eeio_dlio", "Durable"  # DLIO pickles its name
    stand_in("eeio_dlio", Durable=Durable)


def options(factors, generate):
    """DLIO's configuration for Hydra: that of the workload, and what differs here."""
    workload, folder = factors["workload"], Path(factors["folder"])
    size = int(factors["checkpoint"])
    told = {
        "framework": "pytorch",
        "reader.data_loader": "pytorch",
        "reader.read_threads": factors["readers"],
        "dataset.format": FORMATS[workload],
        "dataset.num_samples_per_file": 1,
        "dataset.num_files_train": factors["files"],
        "dataset.num_files_eval": 0,
        "dataset.record_length": factors["record"],
        "dataset.record_length_stdev": factors["deviation"],
        "dataset.data_folder": quoted(folder / "eeio-dlio.data"),
        "workflow.generate_data": generate,
        "workflow.train": not generate,
        "workflow.evaluation": False,
        "workflow.profiling": False,
        "workflow.checkpoint": workload == "checkpoint",
        "train.epochs": factors["epochs"],
        "output.folder": quoted(factors["output"]),
        "checkpoint.checkpoint_folder": quoted(folder / "eeio-dlio.checkpoints"),
        "checkpoint.model_size": 0,
        "checkpoint.layer_parameters": [],
    }
    if workload == "checkpoint" and not generate:
        # Of 14 bytes a parameter 2 are the model's and 12 the optimizer's, which DLIO divides by 3.
        told |= {
            "reader.batch_size": 1,
            "train.computation_time": 0,
            "checkpoint.steps_between_checkpoints": 1,
            "checkpoint.checkpoint_mechanism_classname": "eeio_dlio.Durable",
            "checkpoint.model_size": size // 7,
            "checkpoint.optimization_groups": [size * 2 // 7],
        }
    pattern = "unet3d" if workload == "checkpoint" else workload
    return [
        f"workload={pattern}_{factors['accelerator']}",
        f"hydra.run.dir={quoted(factors['output'])}",
        "hydra.output_subdir=null",
        *(f"++workload.{key}={value}" for key, value in told.items()),
    ]


def quoted(path):
    """As Hydra's grammar has it, for any path without a backslash before a quote."""
    return "'" + str(path).replace("'", "\\'") + "'"


def start(main, factors, generate):
    """Runs DLIO in this process; its errors, also those of Hydra, become one line."""
    # Where a kill must leave nothing: MPI's session and the sockets by which readers pass samples.
    # Those are relative, because a socket's path has at most 107 characters.
    os.chdir(factors["folder"])
    temporary = "eeio-dlio.tmp"
    Path(temporary).mkdir(exist_ok=True)
    multiprocessing.current_process()._config["tempdir"] = temporary
    os.environ |= {
        "HYDRA_FULL_ERROR": "1",
        "OMPI_MCA_ess_singleton_isolated": "1",
        "OMPI_MCA_orte_tmpdir_base": str(Path(temporary).resolve()),
    }
    os.register_at_fork(after_in_child=die_with_parent)
    sys.argv = ["dlio_benchmark", *options(factors, generate)]
    try:
        main.DLIOMPI.get_instance().initialize()
        main.run_benchmark()
    except SystemExit as end:
        raise DlioError(f"DLIO ended with exit code {end.code}") from end
    except MemoryError as error:
        raise DlioError("too little memory: give fewer read_threads") from error
    except Exception as error:
        told = " ".join(str(error).split()) or "no reason given"
        raise DlioError(f"DLIO stopped: {type(error).__name__}: {told[:300]}") from error


def files_in(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def flush(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def drop(paths):
    """Their pages out of the page cache: they are clean."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def warm():
    """The code of Python and PyTorch into the page cache: what they load later is no sample. Locked
    pages stay there if other programs drop the page cache; where the limit of locked memory is too
    low, they are only read."""
    libc = ctypes.CDLL(None)
    unlocked = set()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if "/" not in line or "w" in line.split()[1]:
            continue
        start, end = (int(edge, 16) for edge in line.split()[0].split("-"))
        if libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(end - start)):
            unlocked.add(line[line.index("/") :])
    for path in unlocked:
        with suppress(OSError), Path(path).open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def fetched():
    """Bytes that this process and DLIO's readers, also those that have ended, had from storage."""
    found = 0
    for process in ("self", *(child.pid for child in multiprocessing.active_children())):
        path = Path(f"/proc/{process}/io")
        try:
            told = dict(line.split(": ") for line in path.read_text(encoding="ascii").splitlines())
            found += int(told["read_bytes"])
        except (OSError, KeyError, ValueError) as error:
            raise DlioError(f"{path}: the kernel tells no account of bytes: {error}") from error
    return found


class Watch:
    """The edges of DLIO's blocks (an epoch of training) and checkpoints, and their samples."""

    def __init__(self, stats, before_block):
        self.blocks, self.checkpoints, self.samples, self.fetched = [], [], 0, 0
        self._began = (0.0, 0)
        self._before_block = before_block
        for name in ("start_block", "end_block", "batch_processed", "start_ckpt", "end_ckpt"):
            setattr(stats, name, self._wrapped(getattr(self, f"_{name}"), getattr(stats, name)))

    @staticmethod
    def _wrapped(ours, theirs):
        def both(counter, *words, **named):
            ours(counter)
            return theirs(counter, *words, **named)

        return both

    def _start_block(self, counter):
        if not self.blocks:
            warm()
        self._before_block()
        before = fetched()
        self._began = (time.monotonic(), before)

    def _end_block(self, counter):
        began_s, before = self._began
        self.blocks.append([began_s, time.monotonic()])
        self.fetched += fetched() - before

    def _batch_processed(self, counter):
        self.samples += counter.batch_size

    def _start_ckpt(self, counter):
        self.checkpoints.append([time.monotonic()])

    def _end_ckpt(self, counter):
        self.checkpoints[-1].append(time.monotonic())


def phase(name, operation, spatiality, moved, stretches, operations, **metrics):
    taken_s = sum(end_s - start_s for start_s, end_s in stretches)
    return {
        "name": name,
        "operation": operation,
        "spatiality": spatiality,
        "request_size_bytes": None,
        "bytes_moved": moved,
        "start_monotonic_s": stretches[0][0],
        "end_monotonic_s": stretches[-1][1],
        "bandwidth_bytes_per_s": moved / taken_s,
        "metrics": {"operations": operations, "operations_per_s": operations / taken_s, **metrics},
        "invalid": [],
        **({"stretches_monotonic_s": stretches} if len(stretches) > 1 else {}),
    }


def check_fetched(row, got, paths):
    """Files are fetched in whole pages, and once. Returns a note if that was not so."""
    wanted = sum(-(-path.stat().st_size // PAGE_BYTES) * PAGE_BYTES for path in paths)
    row["metrics"]["fetched_bytes"] = got
    if got < FETCHED * wanted:
        row["invalid"].append(
            f"{got} of {wanted} bytes were fetched from storage: the others came from a cache"
        )
    if got <= AGAIN * wanted:
        return []
    more = f"{got / wanted - 1:.0%} more bytes were fetched than the files have"
    return [
        f"{row['name']}: {more}: what was read ahead left the page cache before it was used "
        "(another program dropped it, or memory was short)"
    ]


def trained(factors, seen, paths):
    """The phase of training: reads, with the computation that DLIO emulates between them."""
    epochs = int(factors["epochs"])
    if len(seen.blocks) != epochs or not seen.samples:
        raise DlioError(f"DLIO trained in {len(seen.blocks)} blocks, wanted {epochs}")
    summary = Path(factors["output"]) / "summary.json"
    try:
        told = json.loads(summary.read_text(encoding="utf-8"))["metric"]
        rates = [float(rate) for rate in told["train_throughput_samples_per_second"]]
        utilization = float(told["train_au_mean_percentage"]) / 100
        rate = len(rates) / sum(1 / rate for rate in rates)  # of all epochs, over their time
    except (OSError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise DlioError(f"{summary}: not a summary of DLIO: {error!r}") from error
    # DLIO leaves out the first step of an epoch, and reports 0 if there is no other.
    known = {"accelerator_utilization_ratio": utilization} if utilization > 0 else {}
    row = phase(
        "train",
        "read",
        "mixed",
        epochs * sum(path.stat().st_size for path in paths),
        seen.blocks,
        seen.samples,
        dlio_samples_per_s=rate,
        **known,
    )
    notes = check_fetched(row, seen.fetched, paths * epochs)
    if not known:
        notes.append("no accelerator utilization: DLIO leaves out the first step of each epoch")
    if seen.samples != epochs * int(factors["files"]):
        row["invalid"].append(f"DLIO read {seen.samples} samples of {epochs * len(paths)}")
    ours = row["metrics"]["operations_per_s"]
    if abs(ours - rate) > AGREEMENT * ours:
        row["invalid"].append(f"DLIO reports {rate:.6g} samples/s, eeio measured {ours:.6g}")
    return [row], notes


def restored(factors, seen):
    """The phases of the checkpoints: written until durable, then read back as PyTorch does."""
    import torch

    paths = files_in(Path(factors["folder"]) / "eeio-dlio.checkpoints")
    count, moved = len(seen.checkpoints), sum(path.stat().st_size for path in paths)
    if count != int(factors["files"]) or not paths:
        raise DlioError(f"DLIO wrote {count} checkpoints, wanted {factors['files']}")
    written = phase("checkpoint", "write", "sequential", moved, seen.checkpoints, count)
    written["includes_flush"] = True
    drop(paths)
    before, began_s = fetched(), time.monotonic()
    for path in paths:
        torch.load(path)
    read = phase("restore", "read", "sequential", moved, [[began_s, time.monotonic()]], count)
    return [written, read], check_fetched(read, fetched() - before, paths)


def run(main, factors):
    checkpoint = factors["workload"] == "checkpoint"
    paths = files_in(Path(factors["folder"]) / "eeio-dlio.data")
    if checkpoint:
        checkpointing()
    seen = Watch(main.StatsCounter, lambda: None if checkpoint else drop(paths))
    start(main, factors, generate=False)
    rows, notes = restored(factors, seen) if checkpoint else trained(factors, seen, paths)
    note = "a pattern of MLPerf Storage, not an MLPerf result"
    if not checkpoint:
        note += f"; DLIO sleeps for the time that an {factors['accelerator']} would compute"
    return {"schema_version": 1, "phases": rows, "notes": [note, *notes]}


def main(words):
    factors = dict(word.split("=", 1) for word in words[1:])
    die_with_parent()
    try:
        module = dlio()
        if words[0] == "probe":
            print(f"{VERSION}, PyTorch {importlib.metadata.version('torch')}")
            return
        if words[0] == "generate":
            start(module, factors, generate=True)
            for path in files_in(Path(factors["folder"]) / "eeio-dlio.data"):
                flush(path)
            return
        result = run(module, factors)
        module.DLIOMPI.get_instance().finalize()
    except (DlioError, OSError, MemoryError, RuntimeError) as error:
        print(f"eeio-dlio: {error or 'too little memory'}", file=sys.stderr, flush=True)
        os._exit(1)  # so that no object of DLIO can complain after this line; its readers die, too
    for row in result["phases"]:
        print(f"{row['name']} bandwidth: {row['bandwidth_bytes_per_s'] / 1e6:.6f} MB/s")
        print(f"{row['name']} rate: {row['metrics']['operations_per_s']:.3f} operations/s")
    Path(factors["eeio"]).write_text(json.dumps(result), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
