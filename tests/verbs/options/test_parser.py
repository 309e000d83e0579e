from nbkit.verbs.options.parser import telling_new_folders


def test_only_folders_that_were_made_are_told(tmp_path):
    made, missing = tmp_path / "made" / "trace", tmp_path / "missing" / "trace"
    told = []
    with telling_new_folders([made, missing, tmp_path / "trace", None, "name"], told.append):
        made.parent.mkdir()
    assert told == [f"made the folder {tmp_path / 'made'}"]
