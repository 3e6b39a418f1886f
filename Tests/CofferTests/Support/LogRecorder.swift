import Logging
import Synchronization

@testable import Coffer

/// Collects log messages.
final class LogRecorder: Sendable {
    struct Entry: Sendable {
        let level: Logger.Level
        let message: String
        let metadata: Logger.Metadata

        /// Level and message, as in the table of `Configuration.logger`.
        var text: String { "\(level) \(message)" }
    }

    private let recorded = Mutex<[Entry]>([])

    var entries: [Entry] { recorded.withLock { $0 } }

    /// All entries but those that are logged once in a process, by whichever test comes first.
    var events: [Entry] {
        entries.filter { entry in
            !["SQLCipher ", "memory of keys "].contains { entry.message.hasPrefix($0) }
        }
    }

    var texts: [String] { events.map(\.text) }

    var logger: Logger { Logger(label: "test") { _ in Handler(recorder: self) } }

    func forget() {
        recorded.withLock { $0 = [] }
    }

    private struct Handler: LogHandler {
        let recorder: LogRecorder
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let entry = Entry(
                level: event.level, message: "\(event.message)",
                metadata: metadata.merging(event.metadata ?? [:]) { $1 })
            recorder.recorded.withLock { $0.append(entry) }
        }
    }
}
