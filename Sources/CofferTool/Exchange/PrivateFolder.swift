import Foundation
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A folder that only this user can open, in `TMPDIR` or else `/tmp`, as long as the run lasts.
final class PrivateFolder: Sendable {
    private enum State {
        case none
        case made(String)
        /// No other one is made.
        case removed
    }

    private let state = Mutex(State.none)

    /// The folder; `nil` if there is none.
    var path: String? {
        state.withLock { state in
            if case .made(let path) = state { path } else { nil }
        }
    }

    /// Makes the folder. Must be called once: from then on a signal that ends the process removes
    /// it.
    ///
    /// - Returns: Its path.
    /// - Throws: `ToolError` `.io` if the folder cannot be made; `CancellationError` if the process
    ///   ends.
    func make() throws -> String {
        Signals.willRestore { self.remove() }
        return try state.withLock { state in
            guard case .none = state else { throw CancellationError() }
            let made = try Self.makeFolder()
            state = .made(made)
            return made
        }
    }

    private static func makeFolder() throws -> String {
        let parent = FileManager.default.temporaryDirectory.path
        var template = Array("\(parent)/coffer-backup-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            let reason = Errno(rawValue: errno)
            throw ToolError(
                .io, "no folder for the copy can be made in \(parent): \(reason)",
                hint: "Name another folder with the variable TMPDIR.")
        }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Removes the folder. None can be made afterwards.
    func remove() {
        state.withLock { state in
            defer { state = .removed }
            guard case .made(let path) = state else { return }
            // If a signal ends the process, another thread may still make files there.
            for _ in 0..<100 {
                try? FileManager.default.removeItem(atPath: path)
                guard FileManager.default.fileExists(atPath: path) else { return }
                usleep(1000)
            }
        }
    }
}
