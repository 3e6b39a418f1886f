import Coffer
import Foundation

/// A note, which may have one file of any size.
struct Note: Record {
    static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.text) }
    static let files = AttachmentBucket("files", of: \Note.id)

    var id: Int64?
    var title: String
    var text: String
    var created: Date
}

/// The body of a POST.
struct NewNote: Decodable {
    var title: String
    var text: String?
}

/// One page of notes.
struct Page: Encodable {
    var notes: [Note]
    /// The value of `after` for the next page; `nil` for the last one.
    var next: Int64?
}
