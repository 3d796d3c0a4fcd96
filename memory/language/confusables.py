"""Characters that look like a Latin letter, grouped by that letter.

The first part is from Unicode's confusables.txt (UTS #39, version 15.1, © Unicode, Inc., Unicode License v3): letters
that NFKC does not change and that are confusable with one ASCII letter. The second part contains characters that have a
Latin letter in their Unicode name (small capitals, turned and circled letters). A text with replaced characters is only
for comparison and is never stored (docs/adr/0059).
"""

from __future__ import annotations

from typing import Final

_LOOKALIKES: Final = {
    "A": "\u0391\u0410\u13aa\u15c5\ua4ee\U000102a0\U00016f40",
    "B": "\u0392\u0412\u13f4\u15f7\ua4d0\ua7b4\U00010282\U000102a1\U00010301",
    "C": "\u0421\u13df\u2ca4\ua4da\U000102a2\U00010302\U00010415\U0001051c",
    "D": "\u13a0\u15de\u15ea\ua4d3",
    "E": "\u0395\u0415\u13ac\u2d39\ua4f0\U00010286\U000118a6\U000118ae",
    "F": "\u03dc\u15b4\ua4dd\ua798\U00010287\U000102a5\U00010525\U000118a2\U000118c2",
    "G": "\u050c\u13c0\u13f3\ua4d6",
    "H": "\u0397\u041d\u13bb\u157c\u2c8e\ua4e7\U000102cf",
    "I": "\u0196\u0399\u0406\u04c0\u2c92",
    "J": "\u037f\u0408\u13ab\u148d\ua4d9\ua7b2",
    "K": "\u039a\u041a\u13e6\u16d5\u2c94\ua4d7\U00010518",
    "L": "\u13de\u14aa\u2cd0\ua4e1\U0001041b\U00010526\U000118a3\U000118b2\U00016f16",
    "M": "\u039c\u03fa\u041c\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311",
    "N": "\u039d\u2c9a\ua4e0\U00010513",
    "O": (
        "\u039f\u041e\u0555\u0b20\u12d0\u2c9e\u2d54\ua4f3\U00010292\U000102ab\U00010404\U000104c2\U00010516\U000118b5"
    ),
    "P": "\u03a1\u0420\u13e2\u146d\u2ca2\ua4d1\U00010295",
    "Q": "\u2d55",
    "R": "\u01a6\u13a1\u13d2\u1587\ua4e3\U000104b4\U00016f35",
    "S": "\u0405\u054f\u13d5\u13da\ua4e2\U00010296\U00010420\U00016f3a",
    "T": "\u03a4\u0422\u13a2\u2ca6\ua4d4\U00010297\U000102b1\U00010315\U000118bc\U00016f0a",
    "U": "\u054d\u1200\u144c\ua4f4\U000104ce\U000118b8\U00016f42",
    "V": "\u0474\u13d9\u142f\u2d38\ua4e6\ua6df\U0001051d\U000118a0\U00016f08",
    "W": "\u051c\u13b3\u13d4\ua4ea",
    "X": "\u03a7\u0425\u16b7\u2cac\u2d5d\ua4eb\ua7b3\U00010290\U000102b4\U00010317\U00010527",
    "Y": "\u03a5\u0423\u04ae\u13a9\u13bd\u2ca8\ua4ec\U000102b2\U000118a4\U00016f43",
    "Z": "\u0396\u13c3\ua4dc\U000118a9",
    "a": "\u0250\u0251\u03b1\u0430\u1d00\u2c6f\U0001f150\U0001f170\U0001f1e6",
    "b": "\u0184\u0299\u042c\u13cf\u1472\u15af\U0001f151\U0001f171\U0001f1e7",
    "c": "\u0441\u1d04\u2184\u2ca5\uabaf\U0001043d\U0001f152\U0001f172\U0001f1e8",
    "d": "\u0501\u13e7\u146f\u1d05\ua4d2\U0001f153\U0001f173\U0001f1e9",
    "e": "\u01dd\u0258\u0435\u04bd\u1d07\uab32\U0001f154\U0001f174\U0001f1ea",
    "f": "\u0584\u1e9d\ua730\ua799\uab35\U0001f155\U0001f175\U0001f1eb",
    "g": "\u018d\u0261\u0262\u0581\u1d77\u1d83\U0001f156\U0001f176\U0001f1ec",
    "h": "\u0265\u029c\u04bb\u0570\u13c2\ua78d\U0001f157\U0001f177\U0001f1ed",
    "i": "\u0131\u0269\u026a\u03b9\u0456\u04cf\u13a5\u1d09\ua647\uab75\U000118c3\U0001f158\U0001f178\U0001f1ee",
    "j": "\u0237\u03f3\u0458\u1d0a\U0001f159\U0001f179\U0001f1ef",
    "k": "\u029e\u03ba\u043a\u1d0b\ua7b0\U0001df03\U0001f15a\U0001f17a\U0001f1f0",
    "l": "\u01c0\u029f\u16c1\u2d4f\ua4f2\ua780\ua781\U0001028a\U00010309\U00016f28\U0001f15b\U0001f17b\U0001f1f1",
    "m": "\u019c\u043c\u1d0d\U0001f15c\U0001f17c\U0001f1f2",
    "n": "\u0274\u0578\u057c\U0001f15d\U0001f17d\U0001f1f3",
    "o": (
        "\u03bf\u03c3\u043e\u0585\u0d20\u101d\u10ff\u1d0f\u1d11\u2c9f\uab3d\U0001042c\U000104ea\U000118c8"
        "\U000118d7\U0001f15e\U0001f17e\U0001f1f4"
    ),
    "p": "\u03c1\u0440\u1d18\u2ca3\U0001f15f\U0001f17f\U0001f1f5",
    "q": "\u051b\u0563\u0566\ua7af\U0001f160\U0001f180\U0001f1f6",
    "r": "\u0279\u0280\u0433\u1d26\u2c85\uab47\uab48\uab4b\uab81\U0001f161\U0001f181\U0001f1f7",
    "s": "\u01bd\u0455\ua731\uabaa\U00010448\U000118c1\U0001f162\U0001f182\U0001f1f8",
    "t": "\u0287\u03c4\u0442\u1d1b\ua7b1\U0001f163\U0001f183\U0001f1f9",
    "u": "\u028b\u03c5\u057d\u1d1c\ua79f\uab4e\uab52\U000104f6\U000118d8\U0001f164\U0001f184\U0001f1fa",
    "v": "\u0245\u028c\u03bd\u0475\u1d20\uaba9\U00011706\U000118c0\U0001f165\U0001f185\U0001f1fb",
    "w": "\u026f\u028d\u0461\u051d\u0561\u1d21\uab83\U0001170a\U0001170e\U0001170f\U0001f166\U0001f186\U0001f1fc",
    "x": "\u03c7\u0445\u1541\u157d\U0001f167\U0001f187\U0001f1fd",
    "y": "\u0263\u028e\u028f\u03b3\u0443\u04af\u10e7\u1d8c\u1eff\uab5a\U000118dc\U0001f168\U0001f188\U0001f1fe",
    "z": "\u1d22\uab93\U000118c4\U0001f169\U0001f189\U0001f1ff",
}
LATIN_LOOKALIKES: Final = str.maketrans({sign: letter for letter, signs in _LOOKALIKES.items() for sign in signs})
