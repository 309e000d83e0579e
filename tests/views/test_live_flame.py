"""The page's script."""

import pytest

from nbkit.errors import NbkitError
from nbkit.views.live_flame import STATIC, page_script


def test_the_modules_export_is_what_the_host_starts() -> None:
    script = page_script("var a={render:b};export{a as default};\n")
    assert script.startswith("var a={render:b};\n//")
    assert script.endswith("\nnbkitStartPage(a);\n")


def test_the_real_bundle_has_one_export() -> None:
    script = page_script((STATIC / "flamegraph.js").read_text(encoding="utf-8"))
    assert "as default" not in script


@pytest.mark.parametrize("module", ["var a=1;", "export{a as default};export{b as default};"])
def test_another_kind_of_module_is_refused(module: str) -> None:
    with pytest.raises(
        NbkitError, match=r"flamegraph.js has [02] default exports .* expected 1; build it with esbuild"
    ):
        page_script(module)
