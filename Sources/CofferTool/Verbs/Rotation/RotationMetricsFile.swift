import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file that `--prometheus` names: what a run did, for the textfile collector of a node
/// exporter.
///
/// The format: <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>.
struct RotationMetricsFile {
    private var text = ""

    /// - Parameter seconds: How long the run took.
    init(_ events: [RotationEvent], seconds: Double, now: Date = .now) {
        add("coffer_rotation_run_timestamp_seconds", "When the last run of coffer rotate ended.")
        text += "coffer_rotation_run_timestamp_seconds \(Int(now.timeIntervalSince1970))\n"
        add("coffer_rotation_run_seconds", "How long the last run took.")
        text += "coffer_rotation_run_seconds \(seconds)\n"
        add("coffer_rotation_stores", "Stores of the last run, by what became of them.")
        for state in RotationState.allCases where ![.started, .wouldRotate].contains(state) {
            let count = events.count { $0.event == state }
            text += "coffer_rotation_stores{state=\"\(state.rawValue)\"} \(count)\n"
        }
        add("coffer_rotation_pause_seconds", "How long writes to a store waited.", events) {
            $0.pause
        }
        add("coffer_key_made_timestamp_seconds", "When a store's data key was made.", events) {
            $0.keyMade?.timeIntervalSince1970
        }
        add("coffer_root_made_timestamp_seconds", "When a store's root key was made.", events) {
            $0.rootMade?.timeIntervalSince1970
        }
    }

    private mutating func add(_ name: String, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
    }

    private mutating func add(
        _ name: String, _ help: String, _ events: [RotationEvent],
        _ value: (RotationEvent) -> Double?
    ) {
        add(name, help)
        for event in events {
            guard let value = value(event) else { continue }
            text += "\(name){path=\"\(Self.escaped(event.path.absolute))\"} \(value)\n"
        }
    }

    /// "Label values … backslash, double-quote, and line feed characters have to be escaped".
    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("\n", with: "\\n")
    }

    /// Puts the file in the place of an earlier one. A collector reads the one or the other.
    /// Everybody may read it, because a collector is another user.
    ///
    /// - Throws: `ToolError` `.io`.
    func write(to path: String) throws {
        let temporary = path + ".new"
        do {
            let file = try FileDescriptor.open(
                FilePath(temporary), .writeOnly, options: [.create, .truncate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
            try file.closeAfter {
                _ = try file.writeAll(text.utf8)
                guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
            guard rename(temporary, path) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            throw ToolError(.io, "\(path) cannot be written: \(error)")
        }
    }
}
