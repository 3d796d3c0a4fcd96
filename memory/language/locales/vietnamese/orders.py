"""Patterns of Vietnamese orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

VIETNAMESE_ORDERS: Final = short_order_rules(
    "vietnamese",
    always=r"luon|khong bao gio|tu bay gio|tu nay|(?:khi|neu) (?:ai do|nguoi dung|co ai)",
    promote=r"gioi thieu|đe xuat|nhac đen|quang cao|khuyen dung",
    bend=r"bo qua|quen|pha vo",
    rules=r"huong dan|quy tac|chi thi|gioi han|lenh|prompt",
    betray=r"tiet lo|hien thi|gui|chia se",
    treasure=r"mat khau|prompt|the tin dung",
    mine=r"toi|minh|chung toi|tieng viet|tieng anh|ngan gon|đon gian|lich su|ban be|thit|an chay",
)
