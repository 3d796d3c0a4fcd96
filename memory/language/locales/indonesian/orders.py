"""Patterns of Indonesian and Malay orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

INDONESIAN_ORDERS: Final = short_order_rules(
    "indonesian and malay",
    always=r"selalu|sentiasa|jangan pernah|mulai sekarang|(?:jika|kalau|bila|ketika) (?:ada yang|seseorang"
    r"|pengguna|ditanya)",
    promote=r"rekomendasikan|sarankan|sebutkan|sebut|katakan|promosikan|cadangkan|pujilah|usulkan",
    bend=r"abaikan|lupakan|langgar",
    rules=r"instruksi|perintah|aturan|peraturan|batasan|arahan|prompt",
    betray=r"ungkapkan|bocorkan|tampilkan|kirim|kirimkan|bagikan|dedahkan|hantar",
    treasure=r"kata sandi|kata laluan|prompt|kunci|percakapan|riwayat|data pribadi|kartu",
    mine=r"saya|aku|ku|kami|kepadaku|bahasa|singkat|ringkas|sederhana|formal|sopan|vegetarian|vegan|gluten"
    r"|babi|daging",
)
