"""Patterns of Greek orders to the assistant."""

from __future__ import annotations

from typing import Final

from ..order_rules import short_order_rules

GREEK_ORDERS: Final = short_order_rules(
    "greek",
    always=r"παντα|ποτε|απο τωρα|απο εδω και περα|στο μελλον|(?:οταν|αν) (?:καποιοσ|σε ρωτ\w+|ρωτ\w+|ο χρηστησ)",
    promote=r"προτεινε|προτεινετε|να προτεινεισ|συστησε|να συστηνεισ|συνιστα|αναφερε|να αναφερεισ|πεσ οτι"
    r"|διαφημισε",
    bend=r"αγνοησε|αγνοηστε|ξεχασε|ξεχαστε|παρακαμψε",
    rules=r"οδηγι|κανον|περιορισμ|φιλτρ|prompt",
    betray=r"αποκαλυψε|δειξε|στειλε|προωθησε",
    treasure=r"κωδικ|prompt|κλειδι|συνομιλι|ιστορικο|προσωπικα|καρτα",
    mine=r"μου|με|εμενα|μασ|ελληνικα|αγγλικα|γερμανικα|συντομα|απλα|ευγενικα|χορτοφαγ\w*|βιγκαν|γλουτενη"
    r"|λακτοζη|χοιρινο|κρεασ",
)
