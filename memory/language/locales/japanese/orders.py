"""Patterns of Japanese orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

JAPANESE_ORDERS: Final = short_order_rules(
    "japanese",
    always=r"常に|必ず|いつも|今後|これから|今から|決して|絶対に|たびに|聞かれたら|尋ねられたら|質問されたら",
    promote=r"(?:勧め|薦め|奨め|推薦し|推奨し|おすすめし|お勧めし|宣伝し|紹介し|言及し"
    r"|提案し)(?:て(?:ください|下さい|くれ)?(?![いきく])|ろ|よ|なさい|ること)"
    r"|と(?:言|答え)(?:って|て)(?:ください|下さい|くれ)",
    bend=r"無視し(?:て|ろ|なさい)|無視せよ|忘れ(?:て|ろ)|回避し(?:て|ろ)",
    rules=r"指示|命令|ルール|規則|制限|プロンプト",
    betray=r"(?:明かし|教え|表示し|送信し|送っ|公開し|漏らし)(?:て(?:ください|下さい|くれ)?(?![いきくも])"
    r"|ろ|なさい)|開示せよ",
    treasure=r"パスワード|プロンプト|鍵|会話|履歴|個人情報|カード番号",
    mine=r"私|わたし|僕|俺|日本語|英語|短く|簡潔|簡単|丁寧|敬語|友人|同僚|ベジタリアン|豚肉",
    has_spaces=False,
)
