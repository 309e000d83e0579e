"""Settings of a run: what LiBai prints of its config file, and sizes that stand in other lines."""

from nbkit.readers.oneflow.text.settings import Settings

LOG = """\
[08/24 02:43:17 libai]: Rank of current process: 0. World size: 2
[08/24 02:43:17 libai]: Command line arguments: Namespace(resume=False)
[08/24 02:43:17 libai]: Contents of args.config_file=configs/a.py:
from libai.config import LazyCall

# train.train_iter=3
train.amp.enabled=True
optim = LazyCall(Adam)(
    lr=8e-4,
)
[08/24 02:43:17 libai]: Full config saved to out/config.yaml
data has 99621832 tokens, 6064 unique.
[08/24 02:43:19 lb.engine.default]: Auto-scaling the config to train.train_iter=10000, train.warmup_iter=0
[08/24 02:43:19 libai]: Rank of current process: 1. World size: 2
"""


def read(text: str) -> Settings:
    settings = Settings()
    for number, line in enumerate(text.splitlines(), 1):
        settings.see(number, line)
    settings.close()
    return settings


def test_settings_have_name_text_and_line_each_once() -> None:
    assert [(row["name"], row["text"], row["line"]) for row in read(LOG).rows] == [
        ("world_size", "2", 1),
        ("command_line", "Namespace(resume=False)", 2),
        ("config_file", "configs/a.py", 3),
        ("train.amp.enabled", "True", 7),
        ("optim", "LazyCall(Adam)(lr=0.0008)", 8),
        ("data_tokens", "99621832", 12),
        ("unique_tokens", "6064", 12),
        ("train.train_iter", "10000", 13),
        ("train.warmup_iter", "0", 13),
    ]


def test_the_config_is_kept_as_it_was_printed() -> None:
    settings = read(LOG)
    assert settings.config == LOG.splitlines()[3:10]
    assert not settings.is_unreadable


def test_a_config_that_is_no_python_is_kept_without_rows_and_never_run() -> None:
    before, after = "args.config_file=a.yaml:", "Contents of args.config_file=a.py:"
    broken = read(f"{after}\ntrain: {{amp: true}}\n  lr: 1\n")
    assert (broken.is_unreadable, [row["name"] for row in broken.rows]) == (True, ["config_file"])
    assert broken.config == ["train: {amp: true}", "  lr: 1"]
    assert read(f"{before}\na=1\n").rows == []
    assert [row["text"] for row in read(f"{after}\nraise SystemExit\nx = 1 / 0\n").rows] == ["a.py", "1 / 0"]


def test_deep_nesting_is_no_crash() -> None:
    settings = read("Contents of args.config_file=a.py:\nx = " + "(" * 5000 + ")" * 5000 + "\n")
    assert settings.is_unreadable
