"""Chinese labels of secrets, in simplified and traditional characters. `secret_labels.py` explains the fields."""

from __future__ import annotations

from typing import Final

from ..secret_labels import SecretLabels

CHINESE_LABELS: Final = SecretLabels(
    language="chinese",
    stems=(
        "登录信息",
        "密码",
        "密碼",
        "口令",
        "验证码",
        "驗證碼",
        "安全码",
        "安全碼",
        "密钥",
        "密鑰",
        "金鑰",
        "恢复",
        "备用码",
        "备份码",
        "助记词",
        "助記詞",
        "暗号",
        "pin码",
        "pin碼",
        "门禁",
        "令牌",
        "访问码",
        "邀请",
        "复原",
        "通行码",
        "解锁码",
        "秘钥",
    ),
    labels={
        "passphrase": r"助记词|助記詞|恢复短语|种子短语|密保答案|安全问题的?答案|复原短语",
        "api_key": r"api ?(?:密钥|密鑰|金鑰|秘钥)|访问密钥|私有?密钥|密钥|密鑰|金鑰|秘钥",
        "token": r"(?:访问)?令牌",
        "pin": (
            r"(?:银行卡|信用卡|卡|支付|取款|手机|锁屏|门锁?|门禁|保险箱|大门|提款|銀行卡|付款)的?(?:密码|密碼)"
            r"|pin ?[码碼]|(?:动态|短信)?验证码|驗證碼|安全[码碼]|(?:恢复|备用|备份)代码|恢复[码碼]|备用[码碼]"
            r"|备份[码碼]|解锁码|访问码|通行码|门禁码|复原码|cvv码?"
        ),
        "password": r"密码|密碼|口令|暗号|暗號",
    },
    credentials=r"账号密码|账户密码|登录信息|帳號密碼",
    copulas=r"就是|是|为|為|改成了?|改为了?|换成了?|设为|设成了?|设置为|变成了?|用的是|叫",
    marks=r"[\u4e00-\u9fff]",
    about=(
        r"什么|什麼|多少|错|錯|忘|长度|长|短|位数|有效期|过期|安全|强|弱|简单|复杂|必填|请|請|输入|需要"
        r"|必须|应该|不|没|無|无|空|未"
        r"|一样|相同|新|旧|学|管理|策略|生成|重置|找回|几|吗|呢|怎|哪|谁|为什|至少|最少|最多|次数|错误|保护|政策"
    ),
    units=r"位|个|個|天|年|月|日|次|元|字|分|小时|小時|秒|块|名|人|%|加密|加盐|格式|算法|哈希|编码|方式|形式",
    joints=r"和|及|与|或|还有",
    spaced=False,
)
