"""Turkish labels of secrets. A label may have endings: `şifrem` means "my password".

`secret_labels.py` explains the fields.
"""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

TURKISH_LABELS: Final = SecretLabels(
    language="turkish",
    stems=("bilgiler", "sifre", "şifre", "parola", "kod", "anahtar", "cevab", "kelime", "cumle", "pin'i", "pinim"),
    labels={
        "passphrase": (
            r"(?:kurtarma|gizli|güvenlik|tohum) (?:kelimele[rk]\w*|ifade\w*|cümle\w*|öbe\w*)|(?:gizli"
            r"|güvenlik sorusu) cevab\w*"
        ),
        "api_key": r"api anahtar\w{0,6}|gizli anahtar\w{0,6}|erişim anahtar\w{0,6}",
        "pin": (
            r"(?:pin|cvv2?|cvc|sms|erişim|güvenlik|do[gğ]rulama|onay|kurtarma|yedek|kap[ıi]|giri[sş]|kilit"
            r"|kasa|alarm|garaj"
            r"|aktivasyon|tek kullan[ıi]ml[ıi]k|geçi[sş]|kart|telefon)\w{0,8}"
            r" (?:[sş]ifre|kod)(?:u|um|umuz|unuz|un|lar[ıi]"
            r"|lar[ıi]m|si|sim|miz|niz|m|n)?"
            r"|pin'?(?:im|i|imiz)?|kod numaram"
        ),
        "password": (
            r"[sş]ifre(?:m|miz|si|niz|n|ler|leri|mi|yi|sini)?|parola(?:m|m[ıi]z|s[ıi]|n[ıi]z|n|lar|m[ıi]|y[ıi]"
            r"|s[ıi]n[ıi])?"
        ),
    },
    credentials=r"giri[sş] bilgiler\w*",
    spelled=("sifre",),
    copulas=r"[sş]u|[sş]unlar|[sş]unlard[ıi]r|[sş]udur|[sş]öyle|olarak|yani|art[ıi]k|i[sş]te|bu|budur",
    marks=r"\b(?:benim|bir|icin|kart\w*|kodu\w*|hesab\w*)\b|ı|ş|ğ",
    about=(
        r"bu|şu|o|bir|çok|en|az|daha|benim|senin|onun|bizim|ne|nedir|nas[ıi]l|nerede|hangi|ve|veya|ile"
        r"|i[cç]in|de|da|mi|mu"
        r"|değil|degil|yok|var|k[ıi]sa|uzun|g[uü][cç]l[uü]|zay[ıi]f|yanl[ıi][sş]\w*|do[gğ]ru\w*"
        r"|ge[cç]ersiz|ge[cç]erli|güvenli"
        r"|guvenli|güvensiz|unut\w*|kay[ıi]p|yeni|eski|ayn[ıi]|fark\w*|gerekli|zorunlu|gizli|[oö]nemli"
        r"|kolay|zor|de[gğ]i[sş]\w*"
        r"|olmal[ıi]|süre\w*|[cç]al[ıi][sş]\w*|bo[sş]|sab[ıi]r|doldu\w*|doluyor|haz[ıi]r|girin\w*|gir\w*"
        r"|yaz[ıi]l\w*|belirle\w*"
    ),
    units=(
        r"karakter|hane|rakam|harf|kelime|g[uü]n|hafta|ay\b|ayda|y[ıi]l|dakika|saat|kez|defa|deneme|saniye"
        r"|lira|tl\b|basamak"
    ),
    joints=r"ve|veya|ya da",
)
