"""Patterns of Arabic orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

ARABIC_ORDERS: Final = short_order_rules(
    "arabic",
    always=r"دائما|ابدا|أبدا|من الان|من الآن|في المستقبل|(?:عندما|اذا|إذا|كلما) (?:سال\w*|سأل\w*|سئل\w*"
    r"|طلب\w*|يسال\w*|يسأل\w*)",
    promote=r"اوص|أوص|اوصي|أوصي|انصح|اقترح|اذكر|قل|رشح|روج",
    bend=r"تجاهل|تجاهلي|انس|تجاوز|خالف",
    rules=r"التعليمات|تعليمات|القواعد|الاوامر|الأوامر|القيود",
    betray=r"اكشف|افصح|أفصح|اظهر|أظهر|ارسل|أرسل|شارك",
    treasure=r"كلمة المرور|كلمات المرور|كلمة السر|المفتاح|المحادث|السجل|البيانات|البطاقة",
    mine=r"لي|معي|لنا|معنا|علي|بالعربية|بالانجليزية|بالإنجليزية|باختصار|بايجاز|بإيجاز|بادب|بأدب|لحم|نباتي\w*",
)
