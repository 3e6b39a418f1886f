import Coffer

/// The text of SQL statements, compiled one after the other: each may need what the one before it
/// has made.
struct SQLScript {
    /// The name of the source in messages; `nil` for a text that the reader has before their eyes.
    let name: String?
    /// UTF-8, and a NUL at the end.
    let bytes: [UInt8]

    /// - Throws: `ToolError` `.badInput` for a text that is not UTF-8 or holds a NUL.
    init(_ text: [UInt8], name: String?) throws {
        var bytes = text
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
        if let index = bytes.firstIndex(of: 0) {
            let place = name.map { "\($0), line \(Self.line(at: index, in: bytes)): " } ?? ""
            throw ToolError(.badInput, place + "a NUL, which would end the text")
        }
        self.name = name
        self.bytes = bytes + [0]
    }

    /// Reads a file or standard input.
    ///
    /// - Parameter maximumByteCount: A greater one is refused, because it is held in memory.
    init(_ input: InputFile, maximumByteCount: Int) throws {
        try self.init(input.readAll(maximumCount: maximumByteCount), name: input.name)
    }

    /// The source, and the line of the first statement at or after an offset, before a message.
    private func place(of offset: Int) -> String {
        name.map { "\($0), line \(Self.line(at: start(after: offset), in: bytes)): " } ?? ""
    }

    /// The offset after spaces and comments.
    private func start(after offset: Int) -> Int {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0d).contains($0) }
        var rest = bytes[offset...]
        while true {
            rest = rest.drop(while: isSpace)
            if rest.starts(with: "--".utf8) {
                rest = rest.drop { $0 != 0x0a }
            } else if rest.starts(with: "/*".utf8) {
                let end = rest.dropFirst(2).indices.first { rest[$0...].starts(with: "*/".utf8) }
                guard let end else { return rest.startIndex }
                rest = rest[(end + 2)...]
            } else {
                return rest.startIndex
            }
        }
    }

    private static func line(at offset: Int, in bytes: [UInt8]) -> Int {
        bytes[..<offset].count { $0 == 0x0a } + 1
    }

    /// Compiles the statement that begins at an offset.
    ///
    /// - Returns: No statement if there are only spaces, comments or a semicolon; a byte count of 0
    ///   at the end of the text.
    /// - Throws: An error that names the line.
    func compile(
        _ connection: Connection, at offset: Int
    ) throws -> (statement: Statement?, byteCount: Int) {
        do {
            return try bytes.withUnsafeBytes { raw in
                guard let text = raw.baseAddress?.assumingMemoryBound(to: CChar.self) else {
                    return (nil, 0)
                }
                return try connection.prepareFirst(of: text + offset)
            }
        } catch {
            throw failure(error, at: offset)
        }
    }

    /// Calls the body with each statement and its offset, up to the end of the text.
    ///
    /// - Throws: The error of the body, with the line of its statement.
    func forEach(
        _ connection: Connection, from start: Int = 0, _ body: (Statement, Int) throws -> Void
    ) throws {
        var offset = start
        while true {
            let (statement, byteCount) = try compile(connection, at: offset)
            if let statement {
                do {
                    try body(statement, offset)
                } catch {
                    throw failure(error, at: offset)
                }
            } else if byteCount == 0 {
                return
            }
            offset += byteCount
        }
    }

    private func failure(_ error: any Error, at offset: Int) -> any Error {
        guard !(error is CancellationError) else { return error }
        let failure = Failure(error)
        // A statement that Coffer refuses has no code of its own in the library.
        let status = failure.status == .failure ? .sql : failure.status
        return ToolError(status, place(of: offset) + failure.message, hint: failure.hint)
    }
}
