"""A job of three gloo processes, one of which misses a call: what its ranks write, and what is said of it."""

import json
import signal
import subprocess
import time

import pytest

import nbkit
from nbkit.errors import OptionError, RecorderError
from tests.processes import PYTHON

pytestmark = pytest.mark.full  # three processes that wait for each other
RANK = """
import datetime, os, signal, sys, threading, time
import torch, torch.distributed as dist
import nbkit
rank, folder = int(sys.argv[1]), sys.argv[2]
os.chdir(folder)
torch.set_num_threads(1)
store = dist.FileStore("store", 3)
dist.init_process_group("gloo", store=store, rank=rank, world_size=3, timeout=datetime.timedelta(seconds=4))
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
nbkit.dump_ranks("by signal", on_signal=signal.SIGUSR1)
dist.barrier()
threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    with nbkit.optrace() as trace:
        dist.all_reduce(torch.ones(4))
        if rank == 1:
            time.sleep(2.5)
        else:
            dist.all_reduce(torch.ones(5))
except RuntimeError:
    print(trace.meta["notes"][-1])
nbkit.dump_ranks("by hand")
print(heard)
sys.stdout.flush()
time.sleep(4 if rank == 1 else 1)
os._exit(0)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    ranks = [
        subprocess.Popen(
            [*PYTHON, "-c", RANK, str(rank), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    said = [rank.communicate(timeout=120) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], said
    return folder, said


@pytest.mark.parametrize("name", ["by signal", "by hand"])
def test_the_rank_that_misses_a_call_is_named(job, name):
    trace = nbkit.load(job[0] / name)
    (finding,) = trace.findings.to_dict("records")
    evidence = json.loads(finding["evidence"])
    assert (finding["rule"], evidence["ranks"], evidence["made_by"]) == ("missing_rank", [1], [0, 2])
    assert "all_reduce of float32 [5], which ranks 0 and 2 made" in finding["message"]
    # gloo tells while the call lasts that it has not ended, and no longer once it has failed.
    unfinished = [one["unfinished"] for one in trace.meta["ranks"]]
    seq = evidence["seq"]
    assert unfinished == (
        [[["0 (default_pg)", seq]], [], [["0 (default_pg)", seq]]] if name == "by signal" else [[], [], []]
    )


def test_a_handler_that_was_there_is_called(job):
    assert [out.splitlines()[-1] for out, _ in job[1]] == ["[1]", "[1]", "[1]"]


def test_a_recording_that_a_distributed_error_ends_saves_itself_and_the_dump(job):
    folder, said = job
    assert sorted(path.name for path in (folder / "nbkit-hang").iterdir()) == ["rank=0", "rank=2"]
    recorded = nbkit.load(folder / "nbkit-hang" / "rank=2")
    assert not recorded.complete
    assert recorded.meta["error"]["type"] == "RuntimeError"
    assert "`python -m nbkit hang nbkit-hang` compares the calls of all ranks" in recorded.meta["notes"][-1]
    assert "this rank are in nbkit-hang/rank=2; `python -m nbkit hang nbkit-hang` compares the ranks" in said[2][1]
    assert "nbkit-hang" not in said[1][1]


def test_the_command_names_the_rank_without_a_dump(job):
    words = [*PYTHON, "-m", "nbkit", "hang", str(job[0] / "nbkit-hang"), "--fail-on-findings"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")
    assert "there is no dump of rank 1, so that nothing is known of it" in " ".join(done.stdout.split())


def test_bad_use_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(OptionError, match=r"has no rank: call dump_ranks\(\) after torch.distributed.init_process_gr"):
        nbkit.dump_ranks(tmp_path)
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(OptionError, match="on_signal=999 cannot be handled"):
        nbkit.dump_ranks(tmp_path, on_signal=999)
    with pytest.raises(OptionError, match="on_signal=<Signals.SIGKILL: 9> cannot be handled"):
        nbkit.dump_ranks(tmp_path, on_signal=signal.SIGKILL)
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")
    with pytest.raises(RecorderError, match="flight recorder is off: start the job without TORCH_FR_BUFFER_SIZE=0"):
        nbkit.dump_ranks(tmp_path)


ENDED = """
import os, signal, time
import torch.distributed as dist
import nbkit
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
nbkit.dump_ranks("dumps", on_signal=signal.SIGTERM)
dist.barrier()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_process_that_is_ended_by_a_signal_dumps_first_and_ends(tmp_path):
    begun = time.monotonic()
    done = subprocess.run([*PYTHON, "-c", ENDED], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, time.monotonic() - begun < 50) == (128 + signal.SIGTERM, True)
    assert "this rank's collectives are in" in done.stderr
    assert nbkit.load(tmp_path / "dumps").collectives["op"].tolist() == ["barrier"]
