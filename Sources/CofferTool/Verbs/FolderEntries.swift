#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The names in a folder. Foundation leaves out a name that is not UTF-8, and says nothing of a
/// folder that it cannot read.
struct FolderEntries {
    /// Sorted.
    private(set) var names: [String] = []
    /// The names that are not UTF-8, with `\\x` and two digits for each byte that is not ASCII.
    private(set) var misspelt: [String] = []

    /// - Returns: `nil` if the folder cannot be read.
    init?(of path: String) {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        while true {
            errno = 0
            guard let entry = readdir(folder) else { break }
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name == Array(".".utf8) || name == Array("..".utf8) { continue }
            if let text = String(validating: name, as: UTF8.self) {
                names.append(text)
            } else {
                misspelt.append(Self.escaped(name))
            }
        }
        guard errno == 0 else { return nil }
        names.sort()
        misspelt.sort()
    }

    private static func escaped(_ name: [UInt8]) -> String {
        name.map { byte in
            (0x20..<0x7f).contains(byte)
                ? String(UnicodeScalar(byte)) : "\\x" + VisibleText.hexDigits(of: [byte])
        }.joined()
    }
}
