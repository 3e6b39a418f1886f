import Coffer
import CofferService
import Foundation
import InMemoryTracing
import Testing
import Tracing

/// The spans that a tracer of the program gets.
@Suite(.timeLimit(.minutes(5))) struct DistributedTracerTests {
    private let folder: Folder
    private let tracer = InMemoryTracer()

    init() throws {
        folder = try Folder()
    }

    private func open(label: String? = nil) throws -> Store {
        var configuration = Configuration()
        configuration.tracer = DistributedTracer()
        configuration.metricsLabel = label
        return try Store(path: folder.path, key: Folder.key(), configuration: configuration)
    }

    private func text(_ attributes: SpanAttributes) -> [String: String] {
        var found: [String: String] = [:]
        // swift-format-ignore: ReplaceForEachWithForLoop
        attributes.forEach { name, value in found[name] = "\(value)" }
        return found
    }

    @Test func `a write and a read are children of the span around them`() async throws {
        let store = try open()
        try await withTracer(tracer) {
            try await withSpan("request") { _ in
                try await store.write { tx in try tx.execute("CREATE TABLE t(x)") }
                _ = try await store.read { tx in try tx.rows("SELECT x FROM t").count }
            }
        }
        let spans = tracer.finishedSpans
        #expect(spans.map(\.operationName) == ["write notes.db", "read notes.db", "request"])
        let request = try #require(spans.last)
        for span in spans.dropLast() {
            #expect(span.parentSpanID == request.spanID)
            #expect(span.kind == .client)
            #expect(span.events.map(\.name) == ["coffer.body"])
            #expect(span.status == nil)
        }
        let attributes = text(spans[0].attributes)
        #expect(
            Set(attributes.keys) == [
                "db.system.name", "db.operation.name", "db.namespace", "code.file.path",
                "code.line.number",
            ])
        #expect(spans[0].attributes["db.system.name"]?.toSpanAttribute() == "sqlite")
        #expect(spans[1].attributes["db.operation.name"]?.toSpanAttribute() == "read")
        try await store.close()
    }

    @Test func `an error has its code and no text`() async throws {
        struct Refusal: Error { let secret = "a secret value" }
        let store = try open(label: "notes")
        await withTracer(tracer) {
            _ = try? await store.write { tx in
                try tx.execute("INSERT INTO missing VALUES ('a secret value')")
            }
            _ = try? await store.read { _ in throw Refusal() }
        }
        let spans = tracer.finishedSpans
        #expect(spans.map(\.operationName) == ["write notes", "read notes"])
        #expect(spans[0].attributes["error.type"]?.toSpanAttribute() == "sql")
        for span in spans {
            #expect(span.status?.code == .error)
            #expect(span.status?.message == nil)
            #expect(span.errors.isEmpty)
            #expect(!"\(text(span.attributes))\(span.events)".contains("secret"))
        }
        try await store.close()
    }

    @Test func `a call that never ran has a span without a body`() async throws {
        let store = try open()
        try await store.close()
        await withTracer(tracer) { _ = try? await store.write { _ in } }
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.events.isEmpty)
        #expect(span.attributes["error.type"]?.toSpanAttribute() == "closed")
    }

    @Test func `a program without a tracer gets its results`() async throws {
        let store = try open()
        #expect(try await store.read { _ in 1 } == 1)
        try await store.close()
    }
}
