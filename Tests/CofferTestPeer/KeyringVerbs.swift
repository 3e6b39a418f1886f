import CFileRecorder
import Foundation
import Workload

@testable import Coffer

/// Does a verb of a keyring. Records each change of a file, or lets one fail.
func keyringVerb() throws -> String {
    guard let verb = KeyringVerb(rawValue: next()) else { return "unknown verb" }
    let configuration = configuration(next()).early
    let (path, record) = (next(), next())
    let failing = Int64(next()) ?? -1
    let error = Int32(next()) ?? EIO
    let isLasting = next() == "lasting"
    let folder = URL(filePath: path).deletingLastPathComponent().path
    guard recorder_begin(folder, record, failing, error, isLasting) else { return "no record" }
    try verb.run(path, configuration) { recorder_mark("shown") }
    recorder_mark("done")
    return "done"
}
