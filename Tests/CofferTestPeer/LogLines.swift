import Logging

/// Prints warnings as lines of the peer's output.
struct LogLines: LogHandler {
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        say("\(event.level): \(event.message)")
    }
}
