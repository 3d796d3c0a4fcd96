"""Japanese labels of secrets: words that announce a secret. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

JAPANESE_LABELS: Final = SecretLabels(
    language="japanese",
    stems=(
        "ログイン",
        "パス",
        "暗証",
        "合言葉",
        "暗号",
        "コード",
        "キー",
        "トークン",
        "フレーズ",
        "秘密",
        "鍵",
        "ピン",
    ),
    labels={
        "passphrase": (
            r"パスフレーズ|(?:リカバリー?|シード|復元|ニーモニック|回復)(?:・)?フレーズ|秘密の(?:質問の)?答え"
        ),
        "api_key": r"api ?キー|アクセスキー|シークレットキー|秘密鍵",
        "token": r"(?:アクセス)?トークン",
        "pin": (
            r"暗証番号|pin ?(?:コード|番号)|ピンコード|(?:認証|確認|セキュリティ(?:ー)?|アクセス|リカバリー?"
            r"|バックアップ|復旧|回復|ロック解除"
            r"|ワンタイム|エントリー|解錠)(?:・)?(?:コード|キー|パスワード)|パスコード|オートロックの番号"
        ),
        "password": r"パスワード|パスワ|合言葉|合い言葉|暗号|パス(?![a-zァ-ヺー])",
    },
    credentials=r"ログイン情報|idとパスワード|id/パスワード",
    copulas=r"は|が|って|を|って言うのは|というのは",
    marks=r"[\u3040-\u30ff]",
    about=(
        r"何|なに|忘れ|間違|違|短|長|強|弱|安全|危険|必要|必須|入力|変更|設定し|期限|有効|文字|桁|以上"
        r"|以下|未満|同じ|新し|古|無|な[いし]"
        r"|空|教え|ください|下さい|管理|ポリシー|リセット|再設定|回|日|秘密|簡単|複雑|です|ます|どこ|誰|いくつ|忘"
    ),
    units=r"文字|桁|回|日|年|月|時間|分|秒|個|円|人|つ|件|%|暗号化|ハッシュ|形式|方式",
    joints=r"と|や|、",
    spaced=False,
)
