"""Portuguese labels of secrets, for Portugal and Brazil. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

PORTUGUESE_LABELS: Final = SecretLabels(
    language="portuguese",
    stems=(
        "dados",
        "senha",
        "palavra",
        "codigo",
        "chave",
        "frase",
        "respost",
        "abrir",
        "credencia",
        "contra-senha",
        "combinac",
    ),
    labels={
        "passphrase": (
            r"frase (?:de )?(?:recuperacao|seguranca|semente|secreta|seed)|palavras de recuperacao"
            r"|resposta (?:secreta|de seguranca)"
        ),
        "api_key": r"chaves? (?:de |da )?api|chave (?:secreta|de acesso)",
        "pin": (
            r"codigos? (?:pin|secretos?|cvv2?|cvc|otp|sms|de (?:acesso|seguranca|desbloqueio|verificacao"
            r"|recuperacao|backup"
            r"|emergencia|confirmacao|autenticacao)|d[oae] (?:portao|porta|alarme|cofre|garagem|cartao|predio|cadeado"
            r"|telemovel|celular|chip))|combinacao d[oa] (?:cofre|cadeado)|senha (?:do|de) (?:cartao|banco"
            r"|multibanco|caixa)"
            r"|(?:para )?abrir [^.!?;:\n]{0,40}?(?:digite|digita|marque|marca|carregue em|insira|prima|aperte)"
        ),
        "password": r"senhas?|palavras?[ -](?:passe|chave secreta)|contra-senha|pas+w[oe]rds?",
    },
    credentials=r"credenciais|dados de (?:acesso|login)",
    spelled=("senha",),
    copulas=r"e|eh|era|sao|eram|sera|ficou|fica|seria|passou a ser",
    sure_copulas=r"e|eh|era",
    changes=r"para|por|em",
    change_verbs=r"mud|troc|alter|troqu|atualiz|defin",
    marks=r"\b(?:meu|minha|nao|voce|uma|isto|isso|pra|cartao|do meu|da minha|ao|pelo|conta de)\b|é|ã|õ",
    about=(
        r"o|a|os|as|um|uma|nao|muito|mais|menos|meu|minha|teu|tua|seu|sua|que|como|qual|quem|onde|de|do|da"
        r"|para|por|com"
        r"|sem|em|no|na|e|ou|errad\w+|incorret\w+|incorrect\w+|corret\w+|cert\w+|curt\w+|long\w+|fort\w+"
        r"|frac\w+|segur\w+"
        r"|insegur\w+|esquec\w+|perd\w+|nov\w+|velh\w+|antig\w+|necessari\w+|obrigatori\w+|mesm\w+|igua\w+"
        r"|diferent\w+"
        r"|facil|dificil|secret\w+|valid\w+|invalid\w+|expir\w+|alterad\w+|mudad\w+|trocad\w+|deve\w*"
        r"|paciencia|postal"
        r"|usuario|utilizador|nome|email|login|pin|senha|boa|bom|ma|mau|simples|complex\w+|unic\w+"
        r"|roubad\w+|bloquead\w+"
        r"|vazi\w+|important\w+|ess\w+|est\w+|aquel\w+|tudo|nada|sempre|nunca|aqui|ali|client\w+|produt\w+"
        r"|comprimento|chamad\w+"
    ),
    units=(
        r"caracter|digito|letra|palavra|numero|dia|semana|mes|ano|minuto|hora|vez|tentativa|segundo|real"
        r"|reais|euro|foi"
    ),
    joints=r"e|ou",
)
