import Testing

@testable import Coffer

/// A process that has as many files open as it may: a second process with its own limit.
@Suite(.againstHanging, .onOwnThreads) struct DescriptorLimitTests {
    @Test(arguments: ["wal", "delete"])
    func `a process that may open no more files learns the limit and how to raise it`(
        journalMode: String
    ) throws {
        let folder = try TemporaryFolder()
        let limited = ["sh", "-c", #"ulimit -n 64; exec "$@""#, "sh"]
        var lines = try Peer.run(["open-many", journalMode, folder.url.path], under: limited)
        #expect(lines.popLast() == "opened")
        #expect(!lines.isEmpty)
        for line in lines {
            #expect(line.hasPrefix("tooManyFiles: "))
            #expect(line.contains("this process has 64 files open"))
            #expect(line.contains("ulimit -n"))
            #expect(!line.contains("-shm"))
        }
    }
}
