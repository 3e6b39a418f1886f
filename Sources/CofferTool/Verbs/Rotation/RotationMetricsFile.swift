import Foundation

/// The file that `--prometheus` names: what a run did.
struct RotationMetricsFile {
    private let file: ReplacedFile
    private static let first = "coffer_rotation_run_timestamp_seconds"

    /// - Throws: As `ReplacedFile`.
    init(_ path: String) throws {
        file = try ReplacedFile(path, beginning: "# HELP \(Self.first) ")
    }

    /// - Throws: As `ReplacedFile.write`.
    func write(_ list: RotationListResult) throws { try file.write(Self.text(list)) }

    static func text(_ list: RotationListResult, now: Date = .now) -> String {
        let (events, seconds) = (list.stores, list.seconds)
        var text = PrometheusText.head(first, "When the last run of coffer rotate ended.")
        text += "\(first) \(Int(now.timeIntervalSince1970))\n"
        text += PrometheusText.head("coffer_rotation_run_seconds", "How long the last run took.")
        text += "coffer_rotation_run_seconds \(seconds)\n"
        text += PrometheusText.head(
            "coffer_rotation_stores", "Stores of the last run, by what became of them.")
        for state in RotationState.allCases where ![.started, .wouldRotate].contains(state) {
            let count = events.count { $0.event == state }
            text += "coffer_rotation_stores{state=\"\(state.rawValue)\"} \(count)\n"
        }
        let each: [(name: String, help: String, value: (RotationEvent) -> Double?)] = [
            (
                "coffer_rotation_ok", "1 if the last run left nothing to do for a store.",
                { $0.isWhole ? 1 : 0 }
            ),
            ("coffer_rotation_pause_seconds", "How long writes to a store waited.", { $0.pause }),
            (
                "coffer_key_made_timestamp_seconds", "When a store's data key was made.",
                { $0.keyMade?.timeIntervalSince1970 }
            ),
            (
                "coffer_root_made_timestamp_seconds", "When a store's root key was made.",
                { $0.rootMade?.timeIntervalSince1970 }
            ),
        ]
        for (name, help, value) in each {
            text += PrometheusText.head(name, help)
            for event in events {
                guard let value = value(event) else { continue }
                text +=
                    "\(name){path=\"\(PrometheusText.escaped(event.path.absolute))\"} \(value)\n"
            }
        }
        return text
    }
}
