import Coffer
import Foundation
import Synchronization
import Testing

/// A folder that goes with the test.
final class Folder: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    var path: String { url.appending(path: "notes.db").path }

    static func key(_ number: UInt8 = 1) -> StoreKey {
        .raw([UInt8](repeating: number, count: 32))
    }
}

/// Keeps a body where it is until the test lets it go.
final class Hold: Sendable {
    private let isEntered = Mutex(false)
    private let released = DispatchSemaphore(value: 0)

    func stay() {
        isEntered.withLock { $0 = true }
        released.wait()
    }

    func release() { released.signal() }

    func waitForBody() async throws { try await comes { isEntered.withLock { $0 } } }
}

/// Waits until a condition holds that nothing announces, for a minute at most.
func comes(_ condition: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while !condition() {
        try #require(ContinuousClock.now < deadline, "it never came")
        try await Task.sleep(for: .milliseconds(1))
    }
}

/// The code of the error that a task ended with; `nil` if it returned.
func code(_ task: Task<some Sendable, any Error>) async -> StoreError.Code? {
    if case .failure(let error) = await task.result { return (error as? StoreError)?.code }
    return nil
}

/// The descriptors of this process that are open on files of a folder.
func openFiles(in folder: Folder) throws -> [String] {
    let links = "/proc/self/fd"
    let files = FileManager.default
    return try files.contentsOfDirectory(atPath: links).compactMap { name in
        try? files.destinationOfSymbolicLink(atPath: "\(links)/\(name)")
    }
    .filter { $0.contains(folder.url.lastPathComponent) }
}
