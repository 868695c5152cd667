"""Libraries that the loader finds."""

from pathlib import Path

from daqloom.machine.libraries import is_found


def test_a_library_is_found_in_the_cache_or_in_the_folders_of_the_environment(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    cache = tmp_path / "cache"
    assert not is_found("libx.so.1", cache)
    cache.write_bytes(b"glibc-ld.so.cache1.1\0libx.so.1\0/lib/libx.so.1\0")
    assert is_found("libx.so.1", cache)
    assert not is_found("libx.so", cache)
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}")
    assert not is_found("liby.so.1", cache)
    (tmp_path / "liby.so.1").touch()
    assert is_found("liby.so.1", cache)
