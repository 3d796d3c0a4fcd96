"""Patterns of Korean orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

KOREAN_ORDERS: Final = short_order_rules(
    "korean",
    always=r"항상|언제나|늘|절대|앞으로|이제부터|지금부터|물어보면|물으면|질문하면|때마다",
    promote=r"(?:추천|권유|제안|언급|홍보|소개)(?:해라|해 ?줘|해 ?주세요|하세요|하십시오|하라|할 것)"
    r"|말(?:해라|해 ?줘|해 ?주세요|하세요|하라)",
    bend=r"무시(?:해|하)|잊어|우회(?:해|하)",
    rules=r"지시|명령|규칙|제한|프롬프트",
    betray=r"(?:공개|누설|출력|전송|표시)(?:해|하)|알려 ?줘|보내",
    treasure=r"비밀번호|암호|프롬프트|열쇠|대화|기록|개인정보|카드",
    mine=r"나에게|나한테|내게|저에게|저한테|우리|제가|내가|한국어|영어|짧게|간결|간단|정중|존댓말|반말|친구"
    r"|동료|채식|돼지고기",
    has_spaces=False,
)
