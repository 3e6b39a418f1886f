/// Removes marks from letters of the scripts whose marks are accents: Latin, Greek and Cyrillic.
///
/// Swift's standard library does not decompose text, and Foundation on Linux brings all of ICU.
enum Diacritics {
    /// The letter without its accent; `nil` for a combining accent.
    static func strip(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.value < 0xc0 { return scalar }
        if 0x300...0x36f ~= scalar.value { return nil }
        return bases[scalar] ?? scalar
    }

    private static let bases: [Unicode.Scalar: Unicode.Scalar] = {
        var bases: [Unicode.Scalar: Unicode.Scalar] = [:]
        for group in table.unicodeScalars.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
            guard let base = group.first else { continue }
            for scalar in group.dropFirst() { bases[scalar] = base }
        }
        return bases
    }()

    /// Each group is a letter, then every letter that Unicode decomposes into it and marks of
    /// U+0300 to U+036F: from UnicodeData.txt
    /// (<https://www.unicode.org/Public/UCD/latest/ucd/UnicodeData.txt>), up to U+1FFF.
    private static let table = """
        AÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦḀẠẢẤẦẨẪẬẮẰẲẴẶ BḂḄḆ CÇĆĈĊČḈ DĎḊḌḎḐḒ EÈÉÊËĒĔĖĘĚȄȆȨḔḖḘḚḜẸẺẼẾỀỂỄỆ FḞ
        GĜĞĠĢǦǴḠ HĤȞḢḤḦḨḪ IÌÍÎÏĨĪĬĮİǏȈȊḬḮỈỊ JĴ KĶǨḰḲḴ LĹĻĽḶḸḺḼ MḾṀṂ NÑŃŅŇǸṄṆṈṊ OÒÓÔÕÖŌŎŐƠǑǪǬ
        OȌȎȪȬȮȰṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢ PṔṖ RŔŖŘȐȒṘṚṜṞ SŚŜŞŠȘṠṢṤṦṨ TŢŤȚṪṬṮṰ UÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖṲṴṶṸṺ
        UỤỦỨỪỬỮỰ VṼṾ WŴẀẂẄẆẈ XẊẌ YÝŶŸȲẎỲỴỶỸ ZŹŻŽẐẒẔ aàáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ bḃḅḇ
        cçćĉċčḉ dďḋḍḏḑḓ eèéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ fḟ gĝğġģǧǵḡ hĥȟḣḥḧḩḫẖ iìíîïĩīĭįǐȉȋḭḯỉị
        jĵǰ kķǩḱḳḵ lĺļľḷḹḻḽ mḿṁṃ nñńņňǹṅṇṉṋ oòóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ pṕṗ rŕŗřȑȓṙṛ
        rṝṟ sśŝşšșṡṣṥṧṩ tţťțṫṭṯṱẗ uùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự vṽṿ wŵẁẃẅẇẉẘ xẋẍ yýÿŷȳẏẙỳỵ
        yỷỹ zźżžẑẓẕ ÆǢǼ ØǾ æǣǽ øǿ ſẛ ƷǮ ʒǯ ΑΆἈἉἊἋἌἍἎἏᾈᾉᾊᾋᾌᾍᾎᾏᾸᾹᾺᾼΆ ΕΈἘἙἚἛἜἝῈΈ ΗΉἨἩἪἫἬἭἮἯᾘᾙᾚᾛ
        ΗᾜᾝᾞᾟῊῌΉ ΙΊΪἸἹἺἻἼἽἾἿῘῙῚΊ ΟΌὈὉὊὋὌὍῸΌ ΡῬ ΥΎΫὙὛὝὟῨῩῪΎ ΩΏὨὩὪὫὬὭὮὯᾨᾩᾪᾫᾬᾭᾮᾯῺῼΏ αάἀἁἂἃἄἅἆἇὰ
        αᾀᾁᾂᾃᾄᾅᾆᾇᾰᾱᾲᾳᾴᾶᾷά εέἐἑἒἓἔἕὲέ ηήἠἡἢἣἤἥἦἧὴᾐᾑᾒᾓᾔᾕᾖᾗῂῃῄῆῇή ιΐίϊἰἱἲἳἴἵἶἷὶῐῑῒῖῗίΐ οόὀὁὂὃὄὅ
        οὸό ρῤῥ υΰϋύὐὑὒὓὔὕὖὗὺῠῡῢῦῧύΰ ωώὠὡὢὣὤὥὦὧὼᾠᾡᾢᾣᾤᾥᾦᾧῲῳῴῶῷώ ϒϓϔ ІЇ АӐӒ ГЃ ЕЀЁӖ ЖӁӜ ЗӞ
        ИЍЙӢӤ КЌ ОӦ УЎӮӰӲ ЧӴ ЫӸ ЭӬ аӑӓ гѓ еѐёӗ жӂӝ зӟ ийѝӣӥ кќ оӧ уўӯӱӳ чӵ ыӹ эӭ ії ѴѶ ѵѷ ӘӚ
        әӛ ӨӪ өӫ
        """
}
