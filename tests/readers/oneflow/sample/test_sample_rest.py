"""Tests what the real log says beside its graphs against numbers that were counted without nbkit."""

from itertools import islice

import pytest

from nbkit.readers.oneflow.reader import looks_like
from nbkit.readers.text_file import text_lines
from tests.readers.oneflow.frames import counts


@pytest.fixture
def about(sample):
    return sample.meta["oneflow"]


def test_recognised_where_it_begins(sample_path):
    head = list(islice(text_lines(sample_path), 227))
    assert not looks_like("\n".join(head[:226]))
    assert looks_like("\n".join(head))


def test_file_and_glog(sample_path, about):
    assert sum(1 for _ in text_lines(sample_path)) == 44_323
    assert (about["glog_lines"], about["glog_sites"], len(about["threads"])) == (2622, 21, 3)
    assert about["graphs"][0]["listing_line"] == 41_562
    assert [one["graph"] for one in about["graphs"]] == ["GraphBase_0"]


def test_modules(sample):
    modules = sample.modules.set_index("module")
    assert len(modules) == 92
    assert counts(modules["type"]) == {
        **dict.fromkeys(("GPT", "VocabEmbedding", "Sequential"), 1),
        **dict.fromkeys(("Block", "RWKV_TimeMix", "RWKV_ChannelMix"), 6),
        "Linear1D": 45,
        "LayerNorm": 14,
        "ZeroPad2d": 12,
    }
    assert set(modules["calls"]) == {1}
    assert set(modules["model"]) == {"GraphBase_0"}
    assert modules.loc["model.blocks.3.att.key", ["type", "parent", "depth"]].tolist() == [
        "Linear1D",
        "model.blocks.3.att",
        4,
    ]


def test_parameters_of_modules(sample, about):
    params = sample.modules.set_index("module")["params"]
    assert (params["model"], sample.modules["param_bytes"].max()) == (94_803_968, 379_215_872)
    for number in range(6):
        found = [params[f"model.blocks.{number}.{name}"] for name in ("att", "ffn", "ln1", "ln2")]
        assert found == [4_199_424, 9_439_232, 2048, 2048]
    assert (about["graphs"][0]["unused_buffers"], sample.modules["buffer_bytes"].max()) == (
        ["model.copy_mask"],
        4 << 20,
    )


def test_lines_of_the_tree(about):
    common = {"MODULE": 92, "INPUT": 95, "OUTPUT": 93, "PARAMETER": 116, "BUFFER": 1}
    assert about["tree_lines"] == {
        "built": {**common, "GRAPH": 16},
        "listed": {**common, "GRAPH": 1, "CONFIG": 1, "OPERATOR": 1622},
    }


def test_passes(about):
    passes = about["passes"]
    slowest = max(passes, key=lambda one: one["seconds"])
    assert [one["number"] for one in passes] == list(range(36))
    assert round(sum(one["seconds"] for one in passes), 6) == 5.421286
    assert (slowest["name"], slowest["seconds"]) == ("PrunePinnedIdentityOpPass", 2.325767)
    assert about["unfinished_passes"] == []


def test_white_set_was_cut_by_glog(about):
    (white,) = about["sets"]
    assert (white["set"], len(white["names"]), white["is_cut"]) == ("WhiteSet", 707, True)
    assert white["names"][0] == "model.emb-gather-0"


def test_memory(sample, about):
    common = {"graph": "GraphBase_0", "total_mb": 7990.68, "chunk_mb": 6480.66, "chunk_count": 121}
    common |= {"unreused_mb": 372.368, "eager_variables_mb": 1137.65, "eager_variables_count": 348}
    assert about["memory"] == [
        {**common, "rank": 0, "device": 0, "unreused_count": 1092},
        {**common, "rank": 1, "device": 1, "unreused_count": 1093},
    ]
    assert round(3 * sample.modules["param_bytes"].max() / 1e6, 2) == 1137.65
    assert (len(about["memory_blocks"]), max(one["mb"] for one in about["memory_blocks"])) == (242, 5585.02)


def test_times_variables_and_threads(about):
    assert about["stages"] == [
        {"graph": "GraphBase_0", "stage": "building graph", "seconds": 6.16},
        {"graph": "GraphBase_0", "stage": "building plan", "seconds": 3.87},
    ]
    assert about["compile_seconds"] == {"GraphBase_0": 0.87588}
    assert (len(about["job_variables"]["GraphBase_0"]), about["actor_threads"]) == (233, 31)


def test_end_of_the_run(sample, about):
    error = {"type": "error", "message": "Main process received SIGINT, exiting", "source": "line 44307"}
    assert (sample.complete, sample.meta["error"]) == (False, error)
    assert [one["line"] for one in about["errors"]][:3] == [44_307, 44_308, 44_310]
    assert about["errors"][2]["text"] == "driver shutting down"
    assert sample.meta["created"] == "2022-08-24T02:43:23.489161"


def test_metrics(sample, about):
    loss = sample.metrics[sample.metrics["name"] == "total_loss (median of the last 200)"]
    assert (len(loss), about["metric_events"], about["iterations"]) == (18, 18, 10_000)
    assert loss["step"].tolist() == list(range(19, 360, 20))
    last = sample.metrics[sample.metrics["step"] == 359].set_index("name")["value"]
    assert (loss["value"].iloc[0], loss["value"].iloc[-1]) == (9.68, 0.05964)
    assert (last["throughput (samples/s)"], last["time (s/iter, average of all)"], last["lr"]) == (49.78, 0.1607, 8e-4)


def test_time_of_metrics_counts_from_the_first_line(sample):
    assert sample.metrics["time_us"].iloc[0] == 27e6  # 02:43:17 to 02:43:44


def test_mojibake_is_kept_and_counted(about):
    found = about["mojibake"]
    assert (found["count"], found["characters"], found["repaired"]) == (10, 239, 3)
    assert [one["line"] for one in found["lines"] if one["repaired"]] == [21, 96, 97]
    assert found["lines"][2]["repaired"] == "# 导入自定义的 dataset"
