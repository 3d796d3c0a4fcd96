"""Patterns of Hindi orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

HINDI_ORDERS: Final = short_order_rules(
    "hindi",
    always=r"हमेशा|कभी नहीं|अब से|आगे से|जब भी|जब कोई|अगर कोई",
    promote=r"सिफारिश करो|सिफारिश करें|सिफारिश करना|सुझाव दो|सुझाव दें|सुझाओ|सुझाएं|बताओ|बताएं|कहो"
    r"|का नाम लो|का नाम लें",
    bend=r"अनदेखा कर|नजरअंदाज कर|नज़रअंदाज़ कर|भूल जा",
    rules=r"निर्देश|नियम|आदेश|प्रतिबंध",
    betray=r"प्रकट कर|बता द|दिखाओ|दिखाए|भेज",
    treasure=r"पासवर्ड|प्रॉम्प्ट|कुंजी|बातचीत|इतिहास|निजी",
    mine=r"मुझे|मुझसे|मेरे|मेरी|मेरा|हिंदी|हिन्दी|अंग्रेजी|अंग्रेज़ी|संक्षेप|छोटा|सरल|शाकाहारी|मांस",
    has_spaces=False,
)
