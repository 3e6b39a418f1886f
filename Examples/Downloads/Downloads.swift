import Foundation

// A download manager. One encrypted store keeps the downloads, their breakpoints and their manuals;
// the files are next to it.
//
//     swift run --package-path Examples Downloads
//
// fetches 64 files from a server on this machine that breaks connections. It kills the fetching
// process three times, and compares every byte. To fetch files of your own, and to go on after
// Ctrl-C or a kill, run
//
//     swift run --package-path Examples Downloads fetch FOLDER URL...

@main
enum Downloads {
    static func main() async {
        do {
            try await run()
        } catch {
            FileHandle.standardError.write(Data("downloads: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        switch words.first {
        case "fetch" where words.count > 1:
            let urls = words.dropFirst(2).compactMap { URL(string: $0) }
            guard urls.count == words.count - 2, urls.allSatisfy({ $0.host() != nil }) else {
                return explain()
            }
            try await fetch(URL(filePath: words[1]), urls)
        // The process that the demo kills.
        case "fetch-for-demo" where words.count == 2:
            try await fetch(URL(filePath: words[1]), [], Demo.settings)
        case nil:
            let folder = URL.temporaryDirectory.appending(path: "coffer-downloads")
            try? FileManager.default.removeItem(at: folder)
            try await demo(folder, seed: .random(in: 1...1_000_000))
            try FileManager.default.removeItem(at: folder)
        case "demo" where words.count == 3 && UInt64(words[2]) != nil:
            try await demo(URL(filePath: words[1]), seed: UInt64(words[2]) ?? 0)
        default:
            explain()
        }
    }

    private static func explain() {
        let usage = "usage: Downloads [fetch FOLDER URL... | demo FOLDER SEED]\n"
        FileHandle.standardError.write(Data(usage.utf8))
        exit(2)
    }

    /// Fetches what is given, and what earlier runs have left.
    private static func fetch(
        _ folder: URL, _ urls: [URL],
        _ settings: DownloadManager.Settings = DownloadManager.Settings()
    ) async throws {
        let manager = try await DownloadManager(folder: folder, settings)
        _ = try await manager.add(urls.map { Download($0) })
        let list = DownloadList(manager.store)
        await list.start()
        try await manager.start()
        try await manager.waitUntilIdle()
        try await list.stop()
        let failed = try await manager.store.all().filter { $0.state == .failed }
        for download in failed {
            Terminal.write("failed: \(download.url): \(Terminal.visible(download.reason ?? ""))\n")
        }
        try await manager.close()
        if !failed.isEmpty { exit(1) }
    }

    private static func demo(_ folder: URL, seed: UInt64) async throws {
        var demo = try Demo(folder, seed: seed)
        try await demo.run()
        if demo.checks.isFailed { exit(1) }
    }
}
