import CSQLCipher

/// The tokenizers of one handle, by name, and the modules that the engine points to.
///
/// It lives as long as its handle, which every statement retains, so no table can outlive it.
final class TokenizerRegistry {
    /// Set before the engine learns of any tokenizer or module.
    private var link: HandleLink?
    private var tokenizers: [String: AnyTokenizer] = [:]
    private var modules: [TokenizerModule3] = []
    private var namesInFTS5: Set<String> = []

    /// Registers a module with FTS3.
    fileprivate func install(module name: String, on handle: Handle) throws(StoreError) {
        link = handle.link
        let module = TokenizerModule3(name: name, registry: self)
        guard try handle.announce(module) else { return }
        modules.append(module)
    }

    fileprivate func register(
        _ tokenizer: AnyTokenizer, named name: String, on handle: Handle
    ) throws(StoreError) {
        link = handle.link
        let key = name.asciiLowercased
        var isKnown = !modules.isEmpty
        if namesInFTS5.contains(key) {
            isKnown = true
        } else if try TokenizerModule5.register(name, registry: self, on: handle) {
            namesInFTS5.insert(key)
            isKnown = true
        }
        guard isKnown else {
            throw StoreError(.unsupported, "the engine was built without full-text search")
        }
        tokenizers[key] = tokenizer
    }

    /// - Throws: `.notFound`.
    func find(_ name: String) throws(StoreError) -> AnyTokenizer {
        guard let tokenizer = tokenizers[name.asciiLowercased] else {
            throw StoreError(
                .notFound, "no tokenizer named \"\(name)\" is registered",
                hint: "Use register(tokenizer:named:); in a store, in Configuration.prepare.")
        }
        return tokenizer
    }

    /// Refuses `tokenize=module` without an argument if no module's own name is a registered
    /// tokenizer. Before the first text, FTS3 does not say which module it means.
    func requireDefault() throws(StoreError) {
        if modules.contains(where: { tokenizers[$0.name.asciiLowercased] != nil }) { return }
        _ = try find(modules.first?.name ?? "")
    }

    /// The tokens of a text that the engine passes.
    func run(
        _ name: String, _ text: UnsafePointer<CChar>?, byteCount: Int32
    ) throws -> TokenRun {
        guard let handle = link?.handle else { throw Connection.closed }
        let tokenizer = try find(name)
        let bytes = UnsafeBufferPointer(
            start: UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self),
            count: text == nil ? 0 : Int(max(0, byteCount)))
        return try handle.inCallback {
            TokenRun(
                handle, tokenizer.tokens(in: String(separatingAtBadBytes: bytes)),
                byteCount: bytes.count)
        }
    }

    /// Keeps the error for the statement. Returns the code to give to the engine.
    func fail(_ error: any Error) -> Int32 {
        (error as? StoreError ?? StoreError(.misuse, "a tokenizer failed", cause: error))
            .failStatement(of: link?.handle)
    }
}

/// The tokens of one text, each checked when it is asked for.
final class TokenRun {
    private let handle: Handle
    private let tokens: AnyIterator<TextToken>
    private let byteCount: Int
    private var start = 0
    private(set) var position: Int32 = -1

    init(_ handle: Handle, _ tokens: AnyIterator<TextToken>, byteCount: Int) {
        self.handle = handle
        self.tokens = tokens
        self.byteCount = byteCount
    }

    /// - Throws: `.misuse` for a range outside the text, or one that starts before the previous
    ///   range.
    func next() throws(StoreError) -> TextToken? {
        let was = handle.callback.isRunning
        handle.callback.isRunning = true
        defer { handle.callback.isRunning = was }
        while let token = tokens.next() {
            guard token.range.lowerBound >= start, token.range.upperBound <= byteCount else {
                throw StoreError(
                    .misuse,
                    "a tokenizer gave the range \(token.range) after one at \(start), in a "
                        + "text of \(byteCount) bytes",
                    hint: "Give ranges in UTF-8 bytes, in ascending order.")
            }
            start = token.range.lowerBound
            if token.text.isEmpty { continue }
            position += 1
            return token
        }
        return nil
    }

    func fail(_ error: StoreError) -> Int32 { error.failStatement(of: handle) }
}

extension Handle {
    /// The tokenizers of this handle. The engine has pointers into it until every table is closed.
    var tokenizers: TokenizerRegistry { attachment { TokenizerRegistry() } }

    /// Registers modules with FTS3, for which `fts3_tokenizer` is switched on meanwhile. It must
    /// not be replaced yet.
    ///
    /// An engine without FTS3 gets no modules.
    func installTokenizerModules(named names: [String]) throws(StoreError) {
        defer { _ = coffer_set_option(db, Int32(coffer_option_fts3_tokenizer), 0) }
        for name in names {
            guard !name.isEmpty, !name.utf8.contains(0) else {
                throw StoreError(
                    .misuse, "the name of a tokenizer module must not be empty or contain NUL")
            }
            try tokenizers.install(module: name, on: self)
        }
    }

    /// Registers the module `coffer` on a connection for reading, which has none at first: it is
    /// needed for a tokenizer, or for a table that names the module.
    ///
    /// - Throws: The engine's error if it refuses the module.
    func installLackingTokenizerModule() throws(StoreError) {
        guard lacksTokenizerModule else { return }
        try installTokenizerModules(named: [HostileDefence.tokenizerModule])
        lacksTokenizerModule = false
    }

    /// - Throws: `.unsupported`.
    func register(
        _ tokenizer: AnyTokenizer, named name: String
    ) throws(StoreError) {
        guard !isAdopted else {
            throw StoreError(
                .unsupported, "an adopted handle cannot register a tokenizer",
                hint: "The tokenizer would outlive the connection. Open the file with "
                    + "Connection(path:key:).")
        }
        try installLackingTokenizerModule()
        try tokenizers.register(tokenizer, named: name, on: self)
    }
}

extension String {
    /// Decodes UTF-8 with each invalid byte replaced by a space, so the byte count stays the same.
    init(separatingAtBadBytes bytes: UnsafeBufferPointer<UInt8>) {
        if let text = String(exactly: bytes) {
            self = text
            return
        }
        var mended: [UInt8] = []
        mended.reserveCapacity(bytes.count)
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        parsing: while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): mended.append(contentsOf: scalar)
            case .error(let length): mended.append(contentsOf: repeatElement(0x20, count: length))
            case .emptyInput: break parsing
            }
        }
        self.init(decoding: mended, as: UTF8.self)
    }
}
