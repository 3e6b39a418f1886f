import Testing
import Workload

@testable import Coffer

/// Another process that does random verbs on a bucket, and says after each transaction what the
/// bucket must be by now.
struct BucketProcessHarness<Key: BucketKey & Codable> {
    let keys: ModelKeys<Key>
    let keeping: Keeping
    let cache: BucketCache?
    /// For tests of tests: the process does not commit what it says.
    var peerLies = false

    /// Starts the process, and returns once it has opened the store.
    func startPeer(_ path: String) throws -> Peer {
        let peer = try Peer([
            "bucket-verbs", peerLies ? "lying" : "truly",
            Key.self == String.self ? "texts" : "integers", cache == nil ? "plain" : "cached", path,
            "1", keeping.journalMode.description,
            keeping.durability == .power ? "power" : "process",
        ])
        try #require(peer.line() == "ready")
        return peer
    }
}
