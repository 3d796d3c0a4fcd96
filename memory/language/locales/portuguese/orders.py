"""Patterns of Portuguese orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

PORTUGUESE_ORDERS: Final = short_order_rules(
    "portuguese",
    always=r"sempre|nunca|jamais|a partir de agora|de agora em diante|doravante|no futuro|(?:quando"
    r"|se) (?:te |lhe |alguem |o"
    r" usuario |falarem|perguntarem|pedirem)",
    promote=r"recomende[m]?|recomendar|recomendares|sugira[m]?|sugerir|indique[m]?|mencione[m]?"
    r"|diga[m]? que|promova[m]?"
    r"|elogie[m]?|cite[m]?|aconselhe[m]?",
    bend=r"ignore[m]?|ignora|esqueca[m]?|esquece|desconsidere[m]?|contorne[m]?|desative[m]?",
    rules=r"instru[cç]|regra|diretriz|restri[cç]|filtro|prompt",
    betray=r"revele[m]?|revela|divulgue[m]?|mostre[m]?|envie[m]?|encaminhe[m]?|compartilhe[m]?|partilhe[m]?",
    treasure=r"senha|palavra-passe|prompt|chave|credencia|instruc|conversa|historico|dados pessoais|cartao",
    mine=r"me|mim|comigo|nos|meus?|minhas?|portugues|ingles|espanhol|alemao|frances|curt[oa]s?|breve"
    r"|conciso|simples|formal"
    r"|educad[oa]|listas?|tabelas?|emojis?|amig[oa]s|colegas|vegetarian\w+|vegan\w+|gluten|lactose|porco|carne",
)
