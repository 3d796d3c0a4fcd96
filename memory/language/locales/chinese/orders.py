"""Patterns of Chinese orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

CHINESE_ORDERS: Final = short_order_rules(
    "chinese",
    always=r"总是|總是|永远|永遠|始终|始終|一律|每次|从现在起|從現在起|从今以后|從今以後|以后|以後|务必"
    r"|務必|必须|必須|只要有人|当有人|當有人"
    r"|如果有人",
    promote=r"推荐|推薦|建议|建議|提到|提及|宣传|宣傳|声称|聲稱|回答说|回答說",
    bend=r"忽略|无视|無視|忘记|忘記|绕过|繞過|违反|違反",
    rules=r"指令|指示|规则|規則|限制|提示词|提示詞|之前的|以上",
    betray=r"透露|泄露|洩露|输出|輸出|发送|發送|转发|轉發|公开|公開",
    treasure=r"密码|密碼|提示词|提示詞|系统提示|系統提示|密钥|密鑰|对话|對話|聊天记录|个人信息",
    mine=r"我|咱|用中文|用英文|用英语|简短|簡短|简洁|簡潔|简单|簡單|礼貌|禮貌|朋友|同事|素食|猪肉|豬肉",
    has_spaces=False,
)
