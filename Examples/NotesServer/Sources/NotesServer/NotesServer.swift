import Coffer
import CofferService
import Foundation
import Hummingbird
import Logging
import ServiceLifecycle

/// A server for notes: `swift run NotesServer`. README.md has its routes and variables.
@main
struct NotesServer {
    static func main() async {
        var logger = Logger(label: "notes")
        do {
            let settings = try Settings(ProcessInfo.processInfo.environment)
            logger.logLevel = settings.logLevel
            try await run(settings, logger)
        } catch {
            logger.critical("the server ends", metadata: ["error": "\(error)"])
            exit(1)
        }
    }

    private static func run(_ settings: Settings, _ logger: Logger) async throws {
        let notes = StoreService { try await open(settings, logger) }
        let server = Application(
            router: Routes(notes: notes).router(),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), backlog: 1024),
            onServerRunning: { channel in
                // For programs that start this one with port 0.
                print("listening on port \(channel.localAddress?.port ?? settings.port)")
                fflush(nil)
            },
            logger: logger
        )
        // From the last to the first: the requests end before the store closes.
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(service: notes), .init(service: WhenOpen(notes: notes, service: server)),
                ],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }

    /// Opens the store with the key of the key file, and makes both at the first start.
    private static func open(_ settings: Settings, _ logger: Logger) async throws -> Store {
        var configuration = Configuration()
        configuration.logger = logger
        configuration.tracer = DistributedTracer()
        // The default, which this server promises: an answered POST survives a power cut.
        configuration.durability = .power
        let store = try await Store(
            path: settings.folder.appending(path: "notes.db").path, key: try settings.key(),
            configuration: configuration)
        try await store.write { tx in
            try tx.create(Note.self)
            try tx.create(Note.files)
        }
        return store
    }
}

/// A service that starts when the store is open, so that nobody connects to a server without one.
private struct WhenOpen<Server: Service>: Service {
    let notes: StoreService
    let service: Server

    func run() async throws {
        _ = try await notes.opened()
        try await service.run()
    }
}
