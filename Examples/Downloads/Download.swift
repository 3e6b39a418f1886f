import Coffer
import Foundation

/// A file that is being fetched, or has been. The table comes from the struct.
struct Download: Record {
    enum State: String, Codable, CaseIterable {
        case waiting, running, paused, failed, done, cancelled
    }

    static var indexes: [Index<Self>] {
        [
            Index(\.url, isUnique: true), Index(\.name, isUnique: true),
            Index(\.state, \.created),
        ]
    }

    /// The manual of each file, made from its page. The store removes it with its download.
    static let manuals = AttachmentBucket("manuals", of: \Download.id)

    var id = UUID()
    var url: URL
    /// The page of the file, which becomes its manual.
    var page: URL?
    /// The name of the file in the folder of the files.
    var name: String
    var created: Date
    var state = State.waiting

    /// The breakpoint: the number of bytes that the partial file has on disk. It may have more.
    var bytesDone = 0
    /// `nil` before the first answer of the server.
    var bytesTotal: Int?
    /// The version that the bytes belong to: a strong ETag, or Last-Modified.
    var version: String?

    /// The number of attempts since the last byte.
    var attempts = 0
    /// Why the last attempt failed.
    var reason: String?
    /// When a failed download begins again by itself; `nil` if only the user can begin it.
    var nextTry: Date?

    init(_ url: URL, page: URL? = nil, created: Date = .now) {
        self.url = url
        self.page = page
        self.created = created
        name = Self.name(of: url)
    }

    /// The last part of a URL, as a name that stays in its folder and that every disk takes.
    private static func name(of url: URL) -> String {
        let safe = url.lastPathComponent.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control || scalar == "/" ? "_" : scalar
        }
        var name = String(String.UnicodeScalarView(safe.prefix(50)))
        if name.isEmpty || name.hasPrefix(".") { name = "file" + name }
        return name
    }
}
