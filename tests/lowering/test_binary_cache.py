"""What the cache does not give: entries that others may have written."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tilelang.lowering.drivers import cache
from tilelang.lowering.drivers.cache import BinaryCache, key
from tilelang.options import why_unsafe

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
NAME = key(["kernel"])


@pytest.fixture
def kept(tmp_path: Path) -> BinaryCache:
    made = BinaryCache(str(tmp_path / "cache"))
    assert made.put(NAME, b"binary") and made.get(NAME) == b"binary"
    return made


def test_folders_are_made_for_the_user_alone_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert BinaryCache(str(tmp_path / "a" / "b")).put(NAME, b"binary")
    finally:
        os.umask(before)
    folder = tmp_path / "a" / "b"
    assert [p.stat().st_mode & 0o777 for p in (folder, folder / NAME[:2], folder / NAME[:2] / NAME)] == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o720, 0o702])
@pytest.mark.parametrize("where", ["", NAME[:2]])
def test_a_folder_that_others_may_write_is_not_used_and_told_once(
    kept: BinaryCache, mode: int, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert kept.directory is not None
    folder = kept.directory / where
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING, "tilelang"):
        for _ in range(3):
            assert kept.get(NAME) is None and not kept.put(NAME, b"another")
    (told,) = caplog.messages
    assert str(folder) in told and f"{mode:o}" in told and "chmod go-w" in told and "TILELANG_CACHE_DIR" in told
    folder.chmod(0o755)
    assert kept.get(NAME) == b"binary"


def test_a_file_that_others_may_write_is_not_used(kept: BinaryCache) -> None:
    assert kept.directory is not None
    (kept.directory / NAME[:2] / NAME).chmod(0o666)
    assert kept.get(NAME) is None
    assert kept.put(NAME, b"made anew") and kept.get(NAME) == b"made anew"


def test_what_belongs_to_another_user_is_not_used(kept: BinaryCache, monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.stat(__file__)
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid)
    assert why_unsafe(status) is None
    other = os.stat_result((0o40700, 1, 1, 1, 4321, 1, 0, 0, 0, 0))
    assert why_unsafe(other) == "it belongs to the user with the number 4321"
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert why_unsafe(other) is None
    assert why_unsafe(os.stat_result((0o40755, 1, 1, 1, 0, 1, 0, 0, 0, 0))) is None  # root's


def test_an_entry_under_the_name_of_another_is_none(kept: BinaryCache) -> None:
    assert kept.directory is not None
    other = NAME[:2] + key(["another"])[2:]
    (kept.directory / NAME[:2] / NAME).rename(kept.directory / NAME[:2] / other)
    assert kept.get(other) is None


def test_entries_of_an_older_form_are_none(kept: BinaryCache) -> None:
    assert kept.directory is not None
    path = kept.directory / NAME[:2] / NAME
    path.write_bytes(path.read_bytes().replace(b"binary 2", b"binary 1"))
    assert kept.get(NAME) is None


def test_other_folders_beside_the_entries_are_left_alone(kept: BinaryCache, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept.directory is not None
    monkeypatch.setattr(cache, "_MOST_ENTRIES", 2)
    (kept.directory / "other").mkdir()
    for n in range(5):
        (kept.directory / "other" / str(n)).write_text("")
    for n in range(5):
        kept.put(key([str(n)]), b"x")
    assert len(list((kept.directory / "other").iterdir())) == 5
