"""Frequent words of Turkish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

TURKISH_WORDS: Final = CommonWords(
    tag="tr",
    function="""
    ben bana benim biz bizim sen o bir ve ile için ama da de değil var yok çok adım yaşıyorum çalışıyorum
    """,
    frequent="""
    bir ve ile de da için değil var yok çok daha olarak artık yaşıyor çalışıyor seviyor oturuyor içiyor yiyor
    konuşuyor oynuyor okuyor adı yaşında
    """,
)
