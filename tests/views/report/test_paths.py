"""Paths of a machine, shortened."""

import time
from pathlib import Path

import pytest

from nbkit.views.report.leaving import short_path

# In two parts, so that this file names no place of a machine.
HOME, ROOT = "/" + "home", "/" + "root"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (f"{Path.home()}/model/train.py:7", "~/model/train.py:7"),
        (f"{HOME}/ann/model/train.py:7", "~/model/train.py:7"),
        (f"{ROOT}/train.py:7", "~/train.py:7"),
        ("/Users/ann/a b/train.py:7", "~/a b/train.py:7"),
        (r"C:\Users\ann\train.py:7", r"~\train.py:7"),
        ("/opt/venv/lib/python3.11/site-packages/lit/trainer.py:9", "site-packages/lit/trainer.py:9"),
        ("/usr/lib/python3/dist-packages/lit.py:9", "dist-packages/lit.py:9"),
        (f"no file '{HOME}/ann/data.bin'", "no file '~/data.bin'"),
        (f"src{HOME}/x.py:1", f"src{HOME}/x.py:1"),
        ("/data/ann/secret/model/train.py:7", "…/model/train.py:7"),
        ("no file '/data/ann/secret/model/data.bin'", "no file '…/model/data.bin'"),
        (r"D:\data\ann\model\train.py:7", "…/model\\train.py:7"),
        ("/model/train.py:7", "/model/train.py:7"),
        ("1/2/3/4 or a/b/c/d.py:1", "1/2/3/4 or a/b/c/d.py:1"),
        ("Cell In[7], line 3", "Cell In[7], line 3"),
    ],
)
def test_what_tells_of_the_user_is_gone(text: str, short: str) -> None:
    assert short_path(text) == short


def test_a_long_word_takes_no_time() -> None:
    started = time.process_time()
    assert short_path("W" * 200_000) == "W" * 200_000
    assert short_path("/w" * 100_000 + ":") == "…/w/w:"
    assert time.process_time() - started < 5.0  # minutes if every letter began anew
