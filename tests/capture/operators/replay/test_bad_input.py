import json
import os
import shutil

import pytest
import torch

import nbkit
from nbkit.trace.calls.layout import CALLS, HEAD, PLACES
from tests.capture.operators.folders import captured, first_of, problems, records, rewritten


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captured") / "calls"
    captured(folder, ops="aten.addmm, aten.native_batch_norm, aten.relu, aten.mm, aten.t, aten._foreach*")
    return folder


@pytest.fixture
def folder(tmp_path, calls):
    return shutil.copytree(calls, tmp_path / "calls")


def changed(folder, at=0, /, **fields):
    """Returns a folder whose call has these fields, and the reasons that its replay gives."""

    def change(number, record):
        return record | fields if number == at else record

    target = rewritten(folder, folder.parent / "changed", change)
    trace = nbkit.opreplay(target)
    assert trace.meta["replayed_calls"] == len(records(folder)) - 1 and problems(trace) == []
    assert trace.meta["unusable_calls"] == 1
    ((reason, count),) = trace.meta["skipped"].items()
    assert count == 1
    return reason


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("aten.gone.default", f"not run again: aten.gone.default does not exist in torch {torch.__version__}"),
        ("os.system.default", "not run again: os.system.default is of the library 'os', which is not known; "
         "name it in libraries= to allow it"),
        ("aten.from_file.default", "not run again: aten.from_file.default opens a file, which a replay does not"),
        ("aten.__class__.gone", f"not run again: aten.__class__.gone does not exist in torch {torch.__version__}"),
        ("load_library", "not run again: 'load_library' is no name of an op"),
        (["aten"], "not run again: \"['aten']\" is no name of an op"),
    ],
)  # fmt: skip
def test_only_registered_ops_of_known_libraries_are_called(folder, op, reason):
    assert changed(folder, op=op) == reason


def test_a_library_is_called_once_it_is_named(tmp_path):
    library = torch.library.Library("nbkit_test_replay", "FRAGMENT")
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
    try:
        captured(
            tmp_path / "calls", lambda: torch.ops.nbkit_test_replay.double(torch.ones(2)), ops="nbkit_test_replay.*"
        )
        assert nbkit.opreplay(tmp_path / "calls").meta["replayed_calls"] == 0
        assert nbkit.opreplay(tmp_path / "calls", libraries="nbkit_test_replay").meta["identical_calls"] == 1
    finally:
        library._destroy()
    with pytest.raises(nbkit.OptionError, match="No library 'nbkit_test_other' has registered ops"):
        nbkit.opreplay(tmp_path / "calls", libraries="nbkit_test_other")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "0-00000000", "0-", "777"])
def test_values_are_looked_up_in_the_folder_alone(folder, name):
    number = first_of(folder, "aten.addmm.default")
    (folder.parent / "secret").write_text("secret")
    storages = [entry | {"before": name} for entry in records(folder)[number]["storages"]]
    assert changed(folder, number, storages=storages) == f"not run again: its values {name!r} are not in the folder"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"args": [{"tensor": 99}]}, "IndexError"),
        ({"args": [{"dtype": "load"}]}, "KeyError: 'load'"),
        ({"args": [{"layout": "hub"}]}, "KeyError: 'hub'"),
        ({"args": [{"eval": "1"}]}, "KeyError: 'eval'"),
        ({"args": 3}, "TypeError"),
        ({"tensors": []}, "IndexError"),
        ({"storages": [{"bytes": -1}]}, "ValueError: -1 is no size"),
        ({"storages": None}, "TypeError"),
        ({"state": {"default_dtype": "Tensor"}}, "KeyError: 'Tensor'"),
    ],
)
def test_a_record_that_says_what_cannot_be_is_left_out(folder, fields, reason):
    number = first_of(folder, "aten.addmm.default")
    assert changed(folder, number, **fields).startswith(f"not run again: its record cannot be used ({reason}")


def test_a_tensor_must_lie_in_its_storage(folder):
    number = first_of(folder, "aten.addmm.default")
    tensors = records(folder)[number]["tensors"]
    tensors[0] = tensors[0] | {"offset": 10**9}
    assert "a tensor that does not fit in its storage" in changed(folder, number, tensors=tensors)


@pytest.mark.parametrize("device", ["vulkan", "xpu"])  # torch refuses them with different errors
def test_a_device_that_is_not_here_is_named_with_the_way_out(folder, device):
    number = first_of(folder, "aten.addmm.default")
    storages = [entry | {"device": device} for entry in records(folder)[number]["storages"]]
    sentence = f"not run again: {device}, where it ran, is not here; give device='cpu' to run it there"
    assert changed(folder, number, storages=storages) == sentence
    # On the device of a record that is here, it is the record that is bad.
    storages = [entry | {"device": "meta", "bytes": -1} for entry in storages]
    assert changed(folder, number, storages=storages).endswith("record cannot be used (ValueError: -1 is no size)")


def test_the_cpu_stands_in_for_a_device_that_this_torch_does_not_know(folder):
    def elsewhere(number, record):
        return record | {"storages": [entry | {"device": "other:0"} for entry in record["storages"]]}

    target = rewritten(folder, folder.parent / "elsewhere", elsewhere)
    assert nbkit.opreplay(target).meta["identical_calls"] == 0
    there = nbkit.opreplay(target, device="cpu").meta
    assert not there["skipped"] and there["identical_calls"] == there["captured_calls"] == len(records(folder))


def test_what_nbkit_fails_at_costs_one_call_and_its_rows(folder):
    reason = "ValueError: invalid literal for int() with base 10: 'first'"
    assert changed(folder, number="first") == f"not run again: {records(folder)[0]['op']}: {reason}"
    # By the time that this is seen its result has been compared.
    trace = nbkit.opreplay(folder.parent / "changed")
    rest = nbkit.opreplay(rewritten(folder, folder.parent / "rest", lambda at, record: record if at else None))
    assert trace.diffs[["op_id", "op"]].equals(rest.diffs[["op_id", "op"]])


def test_a_damaged_line_is_one_call(folder):
    lines = (folder / CALLS).read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"op"', b'"oq"', 1)
    lines[-1] = lines[-1][:20]
    (folder / CALLS).write_bytes(b"".join(lines))
    trace = nbkit.opreplay(folder)
    assert trace.meta["skipped"] == {
        "not run again: its record is damaged; capture it again": 1,
        "not run again: its record is cut off or damaged; capture it again": 1,
    }
    assert trace.meta["identical_calls"] == len(lines) - 2


def test_a_truncated_file_of_values_costs_the_calls_that_need_it(folder):
    (file,) = folder.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-10])
    trace = nbkit.opreplay(folder)
    assert all(f"{file.name} cannot be read" in reason for reason in trace.meta["skipped"])
    assert 0 < trace.meta["identical_calls"] < len(records(folder))


def test_a_flipped_bit_of_a_value_is_seen(folder):
    (file,) = folder.glob("*.safetensors")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    trace = nbkit.opreplay(folder)
    assert problems(trace) == []
    assert all("are damaged; capture it again" in reason for reason in trace.meta["skipped"])


def test_a_link_out_of_the_folder_is_not_followed(folder):
    (file,) = folder.glob("*.safetensors")
    os.rename(file, folder.parent / "elsewhere")
    os.symlink(folder.parent / "elsewhere", file)
    assert nbkit.opreplay(folder).meta["unusable_calls"] > 10


@pytest.mark.parametrize("places", [None, "{", "[1]", '{"module": 1}'])
def test_a_capture_without_its_last_file_is_one_of_a_crash(folder, places):
    (folder / PLACES).unlink()
    if places is not None:
        (folder / PLACES).write_text(places)
    trace = nbkit.opreplay(folder)
    assert trace.meta["identical_calls"] == len(records(folder))
    assert trace.ops["module"].isna().all() and set(trace.ops["phase"]) == {"other"}


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            None,
            "holds no captured calls: it has no capture.json; give the folder that opcapture wrote, or a trace of "
            "opdiff that was saved with values='captured'.",
        ),
        ("{", "is damaged: capture.json is no JSON; capture the step again."),
        ("[1]", "holds no captured calls: capture.json is of another format; give the folder of opcapture."),
        *(
            (
                {"version": version},
                f"has format version {version}, and this nbkit reads format version 2 only; record it again with "
                "this version of nbkit, or open it with the one that wrote it.",
            )
            for version in (1, 3)
        ),
        ({"format": "x"}, "holds no captured calls: capture.json is of another format; give the folder of opcapture."),
    ],
)
def test_what_is_no_capture_is_refused(folder, head, message):
    known = json.loads((folder / HEAD).read_text())
    if head is None:
        (folder / HEAD).unlink()
    else:
        (folder / HEAD).write_text(json.dumps(known | head) if isinstance(head, dict) else head)
    with pytest.raises(nbkit.TraceError) as error:
        nbkit.opreplay(folder)
    assert str(error.value) == f"{folder} {message}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeats": 0}, "repeats must be a whole number from 1 to "),
        ({"warmup": -1}, "warmup must be a whole number from 0 to "),
        ({"device": "moon"}, "device='moon' cannot be used ("),
        ({"device": "vulkan"}, "device='vulkan' cannot be used ("),
        ({"against": "moon"}, "reference='moon' cannot be used ("),
        ({"calls": "x"}, "calls='x' names no calls"),
    ],
)
def test_bad_options_are_refused(folder, options, message):
    with pytest.raises(nbkit.OptionError) as error:
        nbkit.opreplay(folder, **options)
    assert str(error.value).startswith(message)


def test_there_must_be_a_folder(tmp_path):
    with pytest.raises(nbkit.TraceError, match="There is no .*absent; give the folder that nbkit.opcapture wrote."):
        nbkit.opreplay(tmp_path / "absent")
    with pytest.raises(nbkit.OptionError, match="folder must be a path, got None"):
        nbkit.opreplay(None)
