import Testing

@testable import Coffer

#if os(Linux)
/// A system that refuses to lock memory, in a second process with its own limit.
@Suite(.againstHanging, .onOwnThreads) struct LockedMemoryTests {
    /// The limit is 0. Root is not bound by it unless the capability is dropped.
    private static let limited = """
        ulimit -l 0
        if [ "$(id -u)" = 0 ]; then exec setpriv --bounding-set -ipc_lock "$@"; fi
        exec "$@"
        """

    @Test func `a system that locks no memory is reported once, and by the statistics`() throws {
        let folder = try TemporaryFolder()
        let lines = try Peer.run(
            ["locked-memory", "1", folder.path("a.db"), folder.path("b.db")],
            under: ["sh", "-c", Self.limited, "sh"])
        #expect(
            lines == [
                "warning: the memory of keys is not locked: raise the limit (ulimit -l)",
                "locked false",
            ])
    }

    @Test func `a system that locks memory is not reported`() throws {
        let folder = try TemporaryFolder()
        let lines = try Peer.run(["locked-memory", "1", folder.path("a.db"), folder.path("b.db")])
        #expect(lines == ["locked true"])
    }
}
#endif
