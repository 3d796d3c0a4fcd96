"""Files that a person wrote with any editor."""

from __future__ import annotations

import codecs

import pytest

from memstream.schemas.text_files import toml_of

TEXT = 'name = "Zoë"\r\ntier = "free"\n'


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "byte order mark"])
def test_utf_8_is_read_with_or_without_a_byte_order_mark(mark: bytes) -> None:
    assert toml_of(mark + TEXT.encode()) == {"name": "Zoë", "tier": "free"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (TEXT.encode("utf-16"), "is UTF-16"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "is UTF-16"),
        (TEXT.encode("utf-16-le"), "is UTF-16"),
        ("日 = 1".encode("utf-16"), "is UTF-16"),
        (codecs.BOM_UTF16_BE + "日 = 1".encode("utf-16-be"), "is UTF-16"),
        (TEXT.encode("utf-32"), "is UTF-16"),
        (TEXT.encode("latin-1"), "is not UTF-8: byte 0xeb in line 1"),
        (b'a = 1\nb = "\xff"', "is not UTF-8: byte 0xff in line 2"),
        (b"tier = ", "is not valid TOML"),
    ],
)
def test_another_encoding_is_named(value: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        toml_of(value)
