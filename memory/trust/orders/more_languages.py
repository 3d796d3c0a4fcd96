"""Patterns of orders to the assistant in more languages. Each language is described by short word lists.

Two kinds of orders are recognised. The first kind orders the assistant to break a rule or to reveal a secret. The
second kind orders the assistant to always say or recommend something; it may be a preference about answers.
"""

from __future__ import annotations

from typing import Final

from .rules import OrderRules


def _language(
    language: str,
    *,
    always: str,
    promote: str,
    bend: str,
    rules: str,
    betray: str,
    treasure: str,
    mine: str,
    has_spaces: bool = True,
) -> OrderRules:
    """Return the rules of a language. Each word list is a regular expression of alternatives.

    Args:
        language: the name of the language.
        always: words for "always", "never", "from now on", "when somebody asks".
        promote: words for "recommend", "say", "mention", in the imperative only.
        bend: words for "ignore".
        rules: words for things that the assistant must not ignore, such as "instructions".
        betray: words for "reveal" and "send".
        treasure: words for things that the assistant must not reveal, such as "password".
        mine: words that make an order a preference: "me", "us", names of languages, "short", "polite".
        has_spaces: False when the ends of words cannot be searched in the script of the language.
    """
    b = r"\b" if has_spaces else ""
    gap = r"[^.!?。\n]{0,60}"
    whole = rf"{promote}|{bend}|{betray}"
    return OrderRules(
        language=language,
        joints="",
        words={},
        signs=whole if has_spaces else r"\w+",
        orders=(
            rf"{b}(?:{bend}){b}{gap}(?:{rules})",
            rf"(?:{rules}){gap}{b}(?:{bend}){b}",
            rf"{b}(?:{betray}){b}{gap}(?:{treasure})",
            rf"(?:{treasure}){gap}{b}(?:{betray}){b}",
        ),
        standing=(
            rf"{b}(?:{always}){b}{gap}{b}(?:{promote}){b}",
            rf"{b}(?:{promote}){b}{gap}{b}(?:{always}){b}",
        ),
        preferences=(rf"{b}(?:{mine}){b}",),
    )


MORE_ORDERS: Final[tuple[OrderRules, ...]] = (
    _language(
        "italian",
        always=r"sempre|mai|d'ora in poi|da ora in poi|da adesso|in futuro|ogni volta che|(?:quando|se) (?:si"
        r"|qualcuno|l'utente)"
        r" (?:ti |te lo )?(?:chied|parl|domand)\w+",
        promote=r"raccomanda(?:te)?|raccomandi|consiglia(?:te)?|suggerisci|suggerite|suggerisca|proponi"
        r"|proponete|promuovi"
        r"|promuovete|menziona(?:te)?|dite che|di' che",
        bend=r"ignora(?:te|re)?|ignori|dimentica(?:te|re)?|dimentichi|trascura(?:te)?|aggira(?:te)?|disattiva(?:te)?",
        rules=r"istruzion|regol|direttiv|restrizion|filtr|linee guida|prompt",
        betray=r"rivela(?:te)?|riveli|divulga(?:te)?|divulghi|mostra(?:te)?|invia(?:te)?|invii|manda(?:te)?"
        r"|inoltra(?:te)?"
        r"|condividi|condividete",
        treasure=r"password|prompt|chiav[ei]|credenzial|istruzioni|conversazion|cronologia|dati personali"
        r"|carta di credito",
        mine=r"mi|me|noi|nostr\w+|mi[oaei]|mie[il]?|italiano|inglese|tedesco|francese|spagnolo|brev[ei]|corto"
        r"|conciso|semplic[ei]"
        r"|formale|gentil[ei]|elenchi|tabelle|emoji|amic[io]\w*|collegh\w+|vegetarian\w+|vegan\w+|glutine"
        r"|lattosio|maiale|carne",
    ),
    _language(
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
    ),
    _language(
        "dutch",
        always=r"altijd|nooit|voortaan|vanaf nu|van nu af aan|in de toekomst|telkens (?:als|wanneer)|(?:als"
        r"|wanneer) (?:iemand|men|er"
        r"|de gebruiker)",
        promote=r"beveel|adviseer|noem|vermeld|promoot|zeg (?:dat|tegen)|raad(?=[^.!?\n]{0,60}\baan\b)"
        r"|stel(?=[^.!?\n]{0,60}\bvoor\b)",
        bend=r"negeer|vergeet|omzeil|overtreed",
        rules=r"instructie|regel|richtlijn|beperking|filter|prompt",
        betray=r"onthul|verraad|toon|stuur|verstuur|deel|geef",
        treasure=r"wachtwoord|prompt|sleutel|inloggegevens|instructies|gesprek|geschiedenis"
        r"|persoonlijke gegevens|creditcard",
        mine=r"me|mij|ons|mijn|nederlands|engels|duits|frans|kort|bondig|beknopt|eenvoudig\w*|formeel"
        r"|beleefd\w*|lijst\w*|tabel\w*"
        r"|emoji'?s?|vrienden|collega'?s|vegetarisch\w*|vegan\w*|gluten\w*|lactose\w*|varkensvlees|vlees",
    ),
    _language(
        "polish",
        always=r"zawsze|nigdy|od teraz|odtad|w przyszlosci|za kazdym razem|(?:gdy|kiedy|jesli) (?:ktos|kto"
        r"|uzytkownik)",
        promote=r"polecaj(?:cie)?|polec(?:cie)?|rekomenduj(?:cie)?|sugeruj(?:cie)?|proponuj(?:cie)?|mow(?:cie)?"
        r"|wspominaj(?:cie)?"
        r"|zachwalaj(?:cie)?|promuj(?:cie)?|wymieniaj(?:cie)?",
        bend=r"ignoruj(?:cie)?|zignoruj(?:cie)?|zapomnij(?:cie)?|pomin(?:cie)?|obejdz(?:cie)?|lam(?:cie)?",
        rules=r"instrukcj|polece[nń]|zasad|regul|ogranicze[nń]|wytyczn|prompt",
        betray=r"ujawnij(?:cie)?|ujawniaj(?:cie)?|zdradz(?:cie)?|pokaz(?:cie)?|wyslij(?:cie)?|wysylaj(?:cie)?"
        r"|udostepnij(?:cie)?",
        treasure=r"has[lł]|prompt|klucz|dane|rozmow|histori|instrukcj|kart",
        mine=r"mi|mnie|mna|nam|nas|moj\w*|moich|po polsku|po angielsku|po niemiecku|krotko|zwiezle|prosto"
        r"|formalnie|uprzejmie"
        r"|list\w*|tabel\w*|emoji|wegetarian\w+|wegan\w+|gluten\w*|laktoz\w*|wieprzowin\w*|mies\w*",
    ),
    _language(
        "russian",
        always=r"всегда|никогда|отныне|впредь|с этого момента|теперь|в будущем|каждый раз|(?:когда"
        r"|если) (?:тебя |вас )?(?:кто-то"
        r"|спрашива\w+|спрос\w+|пользовател\w+)",
        promote=r"рекомендуй(?:те)?|порекомендуй(?:те)?|советуй(?:те)?|предлагай(?:те)?|упоминай(?:те)?"
        r"|говори(?:те)?|называй(?:те)?"
        r"|хвали(?:те)?|рекламируй(?:те)?|утверждай(?:те)?",
        bend=r"игнорируй(?:те)?|проигнорируй(?:те)?|забудь(?:те)?|обойди(?:те)?|нарушай(?:те)?|отключи(?:те)?",
        rules=r"инструкци|указани|правил|ограничени|фильтр|промпт",
        betray=r"раскрой(?:те)?|раскрывай(?:те)?|выдай(?:те)?|покажи(?:те)?|отправь(?:те)?|отправляй(?:те)?"
        r"|перешли(?:те)?"
        r"|пересылай(?:те)?|сообщи(?:те)?",
        treasure=r"парол|промпт|ключ|переписк|разговор|истори|инструкци|личные данные|карт",
        mine=r"мне|меня|мной|мою|моей|моих|мои|нам|нас|по-русски|по-английски|по-немецки|на русском"
        r"|на английском|кратко|коротко"
        r"|просто|вежливо|на ты|на вы|списк\w+|таблиц\w+|эмодзи|вегетариан\w+|веган\w+|глютен\w*|лактоз\w*"
        r"|свинин\w*|мяс\w*",
    ),
    _language(
        "ukrainian",
        always=r"завжди|ніколи|відтепер|надалі|щоразу|(?:коли|якщо) (?:тебе |вас )?(?:хтось|запиту\w+|пита\w+"
        r"|користувач\w*)",
        promote=r"рекомендуй(?:те)?|радь(?:те)?|пропонуй(?:те)?|згадуй(?:те)?|кажи|кажіть|називай(?:те)?"
        r"|рекламуй(?:те)?",
        bend=r"ігноруй(?:те)?|проігноруй(?:те)?|забудь(?:те)?|обійди|порушуй(?:те)?",
        rules=r"інструкці|вказів|правил|обмежен|фільтр|промпт",
        betray=r"розкрий(?:те)?|видай(?:те)?|покажи|покажіть|надішли|надсилай(?:те)?|повідом(?:те)?",
        treasure=r"парол|промпт|ключ|листуван|розмов|істор|інструкці|особисті дані|карт",
        mine=r"мені|мене|мною|мої[хй]?|моєю|нам|нас|українською|російською|англійською|коротко|просто|ввічливо"
        r"|списк\w+|емодзі"
        r"|вегетаріан\w+|веган\w+|глютен\w*|свинин\w*|м'яс\w*",
    ),
    _language(
        "turkish",
        always=r"her zaman|daima|hep|asla|bundan sonra|bundan boyle|artik|\w+(?:dugunda|diginda|duklarinda"
        r"|diklarinda|uldugunda"
        r"|uldugu zaman|unca|ince|ersa|arsa)",
        promote=r"oner(?:in|iniz)?|tavsiye et(?:in|iniz)?|soyle(?:yin)?|bahset(?:in)?|reklamini yap(?:in)?",
        bend=r"yok say(?:in)?|gormezden gel(?:in)?|unut(?:un)?|dikkate alma(?:yin)?|atla(?:yin)?"
        r"|devre disi birak(?:in)?",
        rules=r"talimat|kural|yonerge|kisitlama|filtre|prompt",
        betray=r"acikla(?:yin)?|ifsa et(?:in)?|goster(?:in)?|gonder(?:in)?|ilet(?:in)?|paylas(?:in)?|ver(?:in)?",
        treasure=r"parola|sifre|prompt|anahtar|konusma|gecmis|kisisel veri|talimatlari|kart",
        mine=r"bana|beni|benim|bize|bizim|turkce|ingilizce|almanca|kisa|oz|basit|resmi|kibar\w*|liste\w*"
        r"|tablo\w*|emoji|vejetaryen"
        r"|vegan|gluten\w*|laktoz\w*|domuz|etli|etsiz",
    ),
    _language(
        "swedish",
        always=r"alltid|aldrig|hadanefter|fran och med nu|fran nu|i framtiden|varje gang|(?:nar|om) (?:nagon"
        r"|man|anvandaren)",
        promote=r"rekommendera|foresla|sag att|marknadsfor|tipsa",
        bend=r"ignorera|strunta|glom|bryt|kringga",
        rules=r"instruktion|regl|riktlinj|begransning|filter|prompt",
        betray=r"avsloja|visa|skicka|vidarebefordra|dela|rob|lamna ut",
        treasure=r"losenord|prompt|inloggning|samtalshistorik|personuppgift",
        mine=r"mig|mej|oss|min|mitt|mina|svenska|engelska|tyska|kort|kortfattat|enkelt|formellt|artigt|list\w+"
        r"|tabell\w*|emojis?"
        r"|vegetarisk\w*|vegansk\w*|gluten\w*|laktos\w*|flask\w*|kott\w*",
    ),
    _language(
        "danish and norwegian",
        always=r"altid|alltid|aldrig|aldri|fra nu af|fra na av|fremover|hver gang|(?:nar|hvis) (?:nogen|noen"
        r"|man|brugeren|brukeren)",
        promote=r"anbefal|foresl[aå]|nævn|nevn|sig at|si at|reklamer|ros",
        bend=r"ignorer|glem|bryd|bryt|omga",
        rules=r"instruks|instruktion|regl|retningslinj|begrænsning|begrensning|filter|filtre|prompt",
        betray=r"afslør|avslør|vis|send|videresend|del|røb|utlever|udlever",
        treasure=r"adgangskode|kodeord|passord|prompt|samtalehistorik|personoplysning",
        mine=r"mig|meg|os|oss|min|mit|mitt|mine|dansk|norsk|engelsk|tysk|kort|kortfattet|enkelt|formelt|høfligt"
        r"|list\w+|tabell?\w*"
        r"|emojis?|vegetar\w*|vegan\w*|gluten\w*|laktose\w*|svinekød|kød|kjøtt",
    ),
    _language(
        "czech and slovak",
        always=r"v[zž]dy|vzdycky|v[zž]dycky|nikdy|od nynejska|odteraz|od teto chvile|pokazde|(?:kdyz"
        r"|ked) (?:se |sa )?(?:nekdo|niekto)",
        promote=r"doporucuj(?:te)?|doporuc(?:te)?|odporucaj(?:te)?|odporuc(?:te)?|navrhuj(?:te)?|zminuj(?:te)?"
        r"|rikej(?:te)?|chval(?:te)?",
        bend=r"ignoruj(?:te)?|zapomen(?:te)?|obejdi|porus(?:te)?",
        rules=r"pokyn|instrukc|pravidl|omezen|filtr|prompt",
        betray=r"prozrad(?:te)?|odhal(?:te)?|ukaz(?:te)?|posli|poslete|posilej(?:te)?|vyzrad(?:te)?",
        treasure=r"hesl|prompt|klic|kluc|rozhovor|histori|pokyny|osobni udaje|kart",
        mine=r"mi|me|mne|nam|nas|muj|moje|cesky|slovensky|anglicky|nemecky|kratce|strucne|jednoduse|formalne"
        r"|zdvorile|seznam\w*"
        r"|tabulk\w*|emoji|vegetarian\w*|vegan\w*|lepek|lepku|laktoz\w*|veprov\w*|maso",
    ),
    _language(
        "romanian",
        always=r"intotdeauna|mereu|niciodata|de acum inainte|de acum incolo|pe viitor|(?:cand|daca) (?:cineva"
        r"|utilizatorul)",
        promote=r"recomanda(?:ti)?|sugereaza|sugerati|propune(?:ti)?|mentioneaza|mentionati|promoveaza"
        r"|spune(?:ti)? ca|lauda(?:ti)?",
        bend=r"ignora(?:ti)?|uita(?:ti)?|ocoleste|incalca",
        rules=r"instructiun|regul|restrictii|filtr|prompt",
        betray=r"dezvaluie|dezvaluiti|arata(?:ti)?|trimite(?:ti)?|divulga(?:ti)?",
        treasure=r"parol|prompt|chei|conversati|istoric|date personale|card",
        mine=r"mi|mie|ma|noua|ne|meu|mea|mei|romana|romaneste|engleza|scurt|concis|simplu|formal|politicos"
        r"|prieten\w*|coleg\w*"
        r"|vegetarian\w*|vegan\w*|gluten|lactoza|porc|carne",
    ),
    _language(
        "hungarian",
        always=r"mindig|soha|mostantol|ezentul|(?:ha|amikor) (?:valaki|a felhasznalo)",
        promote=r"ajanld|ajanlja|ajanlj|javasold|javasolj|emlitsd|mondd|reklamozd|dicserd",
        bend=r"hagyd figyelmen kivul|felejtsd|szegd meg|keruld meg",
        rules=r"utasitas|szabaly|korlatozas|szuro|prompt",
        betray=r"aruld|fedd fel|mutasd|kuldd|oszd meg",
        treasure=r"jelszo|prompt|kulcs|beszelgetes|elozmeny|szemelyes adat|kartya",
        mine=r"nekem|engem|velem|nekunk|magyarul|angolul|nemetul|roviden|tomoren|egyszeruen|udvariasan"
        r"|vegetarianus|vegan|gluten\w*"
        r"|laktoz\w*|sertes\w*|hus\w*",
    ),
    _language(
        "finnish",
        always=r"aina|koskaan|tasta lahtien|jatkossa|(?:kun|jos) (?:joku|kayttaja)",
        promote=r"suosittele|suositelkaa|ehdota|ehdottakaa|mainitse|mainosta|sano etta|kehu",
        bend=r"ohita|unohda|riko|jata huomiotta",
        rules=r"ohje|saanto|saantoj|rajoitu|suodat|prompt",
        betray=r"paljasta|nayta|laheta|jaa|luovuta",
        treasure=r"salasan|prompt|keskusteluhistori|henkilotied",
        mine=r"minulle|minua|minun|meille|suomeksi|englanniksi|lyhyesti|ytimekkaasti|yksinkertaisesti"
        r"|kohteliaasti|kasvis\w*|vegaani\w*"
        r"|gluteeni\w*|laktoosi\w*|sianliha\w*|liha\w*",
    ),
    _language(
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
    ),
    _language(
        "indonesian and malay",
        always=r"selalu|sentiasa|jangan pernah|mulai sekarang|(?:jika|kalau|bila|ketika) (?:ada yang|seseorang"
        r"|pengguna|ditanya)",
        promote=r"rekomendasikan|sarankan|sebutkan|sebut|katakan|promosikan|cadangkan|pujilah|usulkan",
        bend=r"abaikan|lupakan|langgar",
        rules=r"instruksi|perintah|aturan|peraturan|batasan|arahan|prompt",
        betray=r"ungkapkan|bocorkan|tampilkan|kirim|kirimkan|bagikan|dedahkan|hantar",
        treasure=r"kata sandi|kata laluan|prompt|kunci|percakapan|riwayat|data pribadi|kartu",
        mine=r"saya|aku|ku|kami|kepadaku|bahasa|singkat|ringkas|sederhana|formal|sopan|vegetarian|vegan|gluten"
        r"|babi|daging",
    ),
    _language(
        "vietnamese",
        always=r"luon|khong bao gio|tu bay gio|tu nay|(?:khi|neu) (?:ai do|nguoi dung|co ai)",
        promote=r"gioi thieu|đe xuat|nhac đen|quang cao|khuyen dung",
        bend=r"bo qua|quen|pha vo",
        rules=r"huong dan|quy tac|chi thi|gioi han|lenh|prompt",
        betray=r"tiet lo|hien thi|gui|chia se",
        treasure=r"mat khau|prompt|the tin dung",
        mine=r"toi|minh|chung toi|tieng viet|tieng anh|ngan gon|đon gian|lich su|ban be|thit|an chay",
    ),
    _language(
        "arabic",
        always=r"دائما|ابدا|أبدا|من الان|من الآن|في المستقبل|(?:عندما|اذا|إذا|كلما) (?:سال\w*|سأل\w*|سئل\w*"
        r"|طلب\w*|يسال\w*|يسأل\w*)",
        promote=r"اوص|أوص|اوصي|أوصي|انصح|اقترح|اذكر|قل|رشح|روج",
        bend=r"تجاهل|تجاهلي|انس|تجاوز|خالف",
        rules=r"التعليمات|تعليمات|القواعد|الاوامر|الأوامر|القيود",
        betray=r"اكشف|افصح|أفصح|اظهر|أظهر|ارسل|أرسل|شارك",
        treasure=r"كلمة المرور|كلمات المرور|كلمة السر|المفتاح|المحادث|السجل|البيانات|البطاقة",
        mine=r"لي|معي|لنا|معنا|علي|بالعربية|بالانجليزية|بالإنجليزية|باختصار|بايجاز|بإيجاز|بادب|بأدب|لحم|نباتي\w*",
    ),
    _language(
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
    ),
    _language(
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
    ),
    _language(
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
    ),
    _language(
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
    ),
)
