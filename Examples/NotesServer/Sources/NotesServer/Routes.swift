import Coffer
import CofferService
import Foundation
import Hummingbird

/// The answers of the server. Each is one transaction of the store.
struct Routes: Sendable {
    let notes: StoreService

    func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: ErrorsAsJSON())
        router.get("health") { _, _ -> HTTPResponse.Status in
            notes.isOpen ? .ok : .serviceUnavailable
        }
        router.group("notes")
            .post(use: create)
            .get(use: list)
            .get("search", use: search)
            .get("changes", use: changes)
            .get("{id}", use: find)
            .put("{id}/file", use: putFile)
            .get("{id}/file", use: getFile)
        return router
    }

    /// Answers when the commit is on the disk.
    @Sendable private func create(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> EditedResponse<Note> {
        let new = try await request.decode(as: NewNote.self, context: context)
        guard !new.title.isEmpty else {
            throw HTTPError(.badRequest, message: "The title is empty.")
        }
        let note = Note(title: new.title, text: new.text ?? "", created: Date())
        let id = try await notes.store.write { tx in try tx.insert(note) }
        var stored = note
        stored.id = id
        return EditedResponse(
            status: .created, headers: [.location: "/notes/\(id)"], response: stored)
    }

    /// A page by key costs the same at any place.
    @Sendable private func list(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> Page {
        let after = try request.number("after", in: 0...Int.max, default: 0)
        let limit = try request.number("limit", in: 1...1000, default: 50)
        let query = Note.where(\.id > Int64(after)).order(by: \.id).limit(limit + 1)
        let rows = try await notes.store.read { tx in try tx.fetch(query) }
        let page = Array(rows.prefix(limit))
        return Page(notes: page, next: rows.count > limit ? page.last?.id : nil)
    }

    @Sendable private func search(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> Page {
        guard let words = request.uri.queryParameters["q"].map(String.init) else {
            throw HTTPError(.badRequest, message: "Name the words to find: ?q=buy%20milk")
        }
        let limit = try request.number("limit", in: 1...1000, default: 50)
        let query = Note.where(.matching(.prefixes(of: words))).order(by: \.id).limit(limit)
        return Page(notes: try await notes.store.read { tx in try tx.fetch(query) })
    }

    @Sendable private func find(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> Note {
        let id = try context.parameters.require("id", as: Int64.self)
        guard let note = try await notes.store.read({ tx in try tx.find(Note.self, id) })
        else {
            throw HTTPError(.notFound, message: "There is no note \(id).")
        }
        return note
    }

    /// Stores the bytes while they come. The file is there when all of them are.
    @Sendable private func putFile(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> StoredFile {
        let id = try context.parameters.require("id", as: Int64.self)
        let bytes = request.body.map { Data($0.readableBytesView) }
        let length = request.headers[.contentLength].flatMap { Int($0) }
        let file = try await notes.store.set(
            contentsOf: bytes, for: id, in: Note.files, byteCount: length)
        return StoredFile(file)
    }

    @Sendable private func getFile(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> Response {
        let id = try context.parameters.require("id", as: Int64.self)
        let store = try notes.store
        guard let file = try await store.attachment(id, in: Note.files) else {
            throw HTTPError(.notFound, message: "The note \(id) has no file.")
        }
        let chunks = store.chunks(of: id, in: Note.files).map { ByteBuffer(bytes: $0) }
        return Response(
            status: .ok,
            headers: [
                .contentType: "application/octet-stream", .contentLength: "\(file.byteCount)",
            ],
            body: ResponseBody(contentLength: file.byteCount) { writer in
                for try await chunk in chunks { try await writer.write(chunk) }
                try await writer.finish(nil)
            })
    }

    /// Sends an event after each commit, until the client leaves or the server shuts down.
    @Sendable private func changes(
        _ request: Request, _ context: BasicRequestContext
    ) async throws -> Response {
        let events = ChangeStream(changes: try notes.store.changes(in: Note.self))
        return Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await request.body.consumeWithCancellationOnInboundClose { _ in
                    for try await event in events.cancelOnGracefulShutdown() {
                        try await writer.write(event)
                    }
                }
                try await writer.finish(nil)
            })
    }
}

/// The answer to an upload.
struct StoredFile: ResponseEncodable {
    let byteCount: Int
    let sha256: String

    init(_ file: AttachmentInformation) {
        byteCount = file.byteCount
        sha256 = file.sha256.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}

extension Note: ResponseEncodable {}
extension Page: ResponseEncodable {}

extension Request {
    /// A number of the query string, or the default.
    ///
    /// - Throws: 400 for anything but a number in `range`.
    fileprivate func number(
        _ name: String, in range: ClosedRange<Int>, default standard: Int
    ) throws -> Int {
        guard let text = uri.queryParameters[Substring(name)] else { return standard }
        guard let number = Int(text), range.contains(number) else {
            throw HTTPError(
                .badRequest,
                message: "\(name) is a number from \(range.lowerBound)"
                    + (range.upperBound == .max ? "." : " to \(range.upperBound)."))
        }
        return number
    }
}
