"""Tests training metrics of LiBai's logger in both of its forms."""

from nbkit.readers.oneflow.text.libai import Metrics
from tests.readers.oneflow import logs

EVENT = (
    " eta: 1 day, 0:00:01  iteration: 19/100  consumed_samples: 160  total_loss: 9.68  lm_loss: nan  "
    "time: 0.1600 s/iter  data_time: 0.0022 s/iter total_throughput: 50.00 samples/s lr: 8.00e-04  max_mem: 9M"
)
VALUES = {
    "eta (s)": 86_401.0,
    "consumed_samples": 160.0,
    "total_loss (median of the last 200)": 9.68,
    "time (s/iter, average of all)": 0.16,
    "data_time (s/iter, average of the last 20)": 0.0022,
    "throughput (samples/s)": 50.0,
    "lr": 8e-4,
    "max_mem (MB)": 9.0,
}


def values(*lines: str) -> dict[str, float]:
    metrics = Metrics()
    assert all(metrics.line(line, None) for line in lines)
    return {row["name"]: row["value"] for row in metrics.rows if row["value"] == row["value"]}


def test_event_on_the_terminal_and_in_a_file():
    assert values(f"[08/24 02:43:44 lb.utils.events]: {EVENT}") == VALUES
    assert values(f"[08/24 02:43:44] libai.utils.events INFO: {EVENT}") == VALUES


def test_colours_are_taken_off(tmp_path):
    plain = logs.read(tmp_path, "\n".join(logs.EVENTS))
    lines = [line.replace("[", "\x1b[32m[", 1).replace("]: ", "]: \x1b[0m") for line in logs.EVENTS]
    colour = logs.read(tmp_path, "\n".join(lines))
    assert logs.same(plain, colour) == {}
    assert len(plain.metrics) == 10


def test_first_form_of_the_event():
    early = "[08/24 02:43:44 a]:  iteration: 1/9  consumed samples: 8  loss: 1.5  time: 0.1(80.0)  lr: N/A"
    assert values(early) == {
        "consumed_samples": 8.0,
        "loss (median of the last 200)": 1.5,
        "time (s/iter, average of all)": 0.1,
    }


def test_infinite_loss_is_a_value(tmp_path):
    trace = logs.read(tmp_path, "[08/24 02:43:44 a]:  iteration: 1/9  total_loss: inf  x_loss: nan  lr: 1e-3")
    assert trace.metrics["value"].tolist()[0] == float("inf")
    assert trace.metrics["name"].tolist()[1] == "x_loss (median of the last 200)"


def test_new_year():
    metrics = Metrics()
    for line in ("[12/31 23:59:59 a]: x", "[01/01 00:00:01 a]:  iteration: 1/9  lr: 1e-3"):
        metrics.line(line, None)
    assert [row["time_us"] for row in metrics.rows] == [2e6]


def test_other_lines():
    metrics = Metrics()
    assert not metrics.line("[1, 2] iteration: 3", None)
    assert metrics.line("[13/45 99:99:99 a]: iteration: 3  lr: 1", None)
    assert [row["time_us"] for row in metrics.rows] == [None]


def test_one_rank_is_enough_and_the_clock_begins_with_the_first_line():
    metrics = Metrics()
    assert not metrics.line("iteration: 3  total_loss: 1.0", "0")
    assert metrics.line("[12/31 23:59:59 x]: begin", "1")
    assert metrics.line("[12/31 23:59:59 x]: eta: 2 days, 3:04:05  iteration: 3/9  lr: 1", "1")
    assert metrics.line("[01/01 00:00:01 x]: iteration: 4  lr: 2  unknown: 7", "1")
    assert metrics.line("[01/01 00:00:01 x]: iteration: 4  lr: 3", "0")
    assert metrics.line("[13/01 00:00:01 x]: iteration: 5  lr: 4", "1")
    rows = [(row["step"], row["name"], row["value"], row["time_us"]) for row in metrics.rows]
    assert rows == [
        (3, "eta (s)", 2 * 86_400 + 3 * 3600 + 4 * 60 + 5, 0.0),
        (3, "lr", 1.0, 0.0),
        (4, "lr", 2.0, 2e6),
        (5, "lr", 4.0, None),
    ]
    assert (metrics.events, metrics.iterations) == (3, 9)
