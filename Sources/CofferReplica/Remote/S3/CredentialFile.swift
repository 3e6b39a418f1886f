import Coffer

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Reads an access key from a file in the format of Amazon's shared credentials file.
/// <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>
enum CredentialFile {
    private static let byteCountMax = 64 << 10

    /// - Throws: `.notFound` for an absent file or profile, `.misuse` for a file that others may
    ///   read or that has no whole key.
    static func keys(_ path: String, profile: String) throws(StoreError) -> S3Keys {
        // A pipe that nobody writes would otherwise be waited for.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT || number == ENOTDIR {
                throw StoreError(.notFound, "there is no file of credentials at \(path)")
            }
            throw StoreError.system(number, "cannot read the credentials in \(path)")
        }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(.misuse, "\(path) is not a plain file")
        }
        guard facts.st_mode & 0o077 == 0 else {
            throw StoreError(
                .misuse, "others may use the credentials in \(path)",
                hint: "Run chmod 600 on the file, and replace the key if others had a chance.")
        }
        // In one piece: an array that grows leaves copies behind.
        var bytes = [UInt8](repeating: 0, count: byteCountMax + 1)
        defer { bytes.withUnsafeMutableBytes { $0.wipe() } }
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else {
            throw StoreError.system(errno, "cannot read the credentials in \(path)")
        }
        guard count <= byteCountMax else {
            throw StoreError(.misuse, "\(path) is too long for a file of credentials")
        }
        return try keys(in: bytes[..<count], profile: profile, source: path)
    }

    /// - Parameter source: The file, as messages name it.
    static func keys(
        in bytes: ArraySlice<UInt8>, profile: String, source: String
    ) throws(StoreError) -> S3Keys {
        var values: [String: ArraySlice<UInt8>] = [:]
        var (isInside, isFound) = (false, false)
        for line in bytes.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
            let line = trimmed(line)
            switch line.first {
            case nil, UInt8(ascii: "#"), UInt8(ascii: ";"): continue
            case UInt8(ascii: "["):
                let name = line.dropFirst().prefix { $0 != UInt8(ascii: "]") }
                isInside = trimmed(name).elementsEqual(profile.utf8)
                isFound = isFound || isInside
            default:
                guard isInside, let sign = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
                let name = String(decoding: trimmed(line[..<sign]), as: UTF8.self).lowercased()
                values[name] = trimmed(line[(sign + 1)...])
            }
        }
        guard isFound else {
            throw StoreError(
                .notFound, "\(source) has no profile \(profile)",
                hint: "A profile begins with its name in brackets: [\(profile)]")
        }
        return try S3Keys(
            accessKeyID: String(decoding: values["aws_access_key_id"] ?? [], as: UTF8.self),
            secret: values["aws_secret_access_key"] ?? [], token: values["aws_session_token"],
            source: "profile \(profile) of \(source)")
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        guard let last = bytes.lastIndex(where: { !isBlank($0) }) else { return [] }
        return bytes[...last].drop(while: isBlank)
    }
}
