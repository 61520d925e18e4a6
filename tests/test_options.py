"""Options: each knob has a name in the environment, and a wrong name is an error."""

import pytest

from tilelang.errors import TileLangError
from tilelang.options import Options


def test_defaults_and_environment() -> None:
    assert Options.from_environment({"PATH": "/bin"}) == Options()
    found = Options.from_environment({"TILELANG_VERIFY": "1", "TILELANG_DUMP": "out", "TILELANG_CACHE_DIR": ""})
    assert (found.verify, found.dump, found.cache_dir) == (True, "out", "")
    assert found.replace(verify=None, device="gpu") == Options(verify=True, dump="out", cache_dir="", device="gpu")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(TileLangError) as caught:
        Options.from_environment({"TILELANG_VERFY": "1"})
    assert (caught.value.code, caught.value.mend) == ("unknown-option", "did you mean TILELANG_VERIFY?")
    with pytest.raises(TileLangError) as caught:
        Options.from_environment({"TILELANG_VERIFY": "maybe"})
    assert caught.value.code == "option-value"
