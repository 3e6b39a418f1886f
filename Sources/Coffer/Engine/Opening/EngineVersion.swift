import CSQLCipher

extension Engine {
    /// A version such as `3.46.1`, compared number by number: 2.7 comes before 2.10.
    public struct Version: Sendable, Hashable, Comparable, CustomStringConvertible {
        /// The version as it was given, including any text after the numbers.
        public let description: String
        private let numbers: [Int]

        /// Reads the numbers at the beginning of a text. `nil` if it does not begin with a number.
        public init?(_ text: String) {
            var numbers: [Int] = []
            let leading = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            for part in leading.split(separator: ".", omittingEmptySubsequences: false) {
                guard let number = Int(part) else { break }
                numbers.append(number)
            }
            guard !numbers.isEmpty else { return nil }
            description = text
            // 3.4 and 3.4.0 are one version.
            while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
            self.numbers = numbers
        }

        /// Whether the numbers are the same: 3.4 equals 3.4.0, whatever text follows.
        public static func == (left: Version, right: Version) -> Bool {
            left.numbers == right.numbers
        }

        /// Whether the left version is the earlier one.
        public static func < (left: Version, right: Version) -> Bool {
            left.numbers.lexicographicallyPrecedes(right.numbers)
        }

        /// Hashes the numbers.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(numbers)
        }
    }

    /// Whether any thread may use a connection, one at a time. Coffer requires this. The
    /// corresponding C function is `sqlite3_threadsafe`.
    public static var isThreadSafe: Bool { sqlite3_threadsafe() != 0 }

    /// The source that the engine was built from: date, time and hash.
    /// The corresponding C function is `sqlite3_sourceid`.
    public static var sourceID: String { String(cString: sqlite3_sourceid()) }

    /// The options that the engine was built with, without the prefix `SQLITE_`. The corresponding
    /// C function is `sqlite3_compileoption_get`.
    public static var compileOptions: [String] {
        var options: [String] = []
        while let option = sqlite3_compileoption_get(Int32(options.count)) {
            options.append(String(cString: option))
        }
        return options
    }
}

extension Engine.Capabilities {
    /// SQLite's version, to compare with.
    public var sqlite: Engine.Version? { Engine.Version(sqliteVersion) }

    /// SQLCipher's version, to compare with.
    public var cipher: Engine.Version? { Engine.Version(cipherVersion) }
}
