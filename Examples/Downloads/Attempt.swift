import Foundation

/// One attempt to fetch the rest of a file, from the breakpoint on.
///
/// The order keeps the breakpoint true: bytes are written, then synced, and then the store counts
/// them. Before bytes are cut off, the store no longer counts them.
struct Attempt: Sendable {
    /// The manual of a file is not longer.
    private static let maximumManualByteCount = 1_048_576

    let store: DownloadStore
    let folder: DownloadFolder
    let network: Network
    /// The number of bytes after which the breakpoint moves on.
    let stepByteCount: Int
    /// The transfer that runs, so that somebody can stop it.
    let current = CurrentTransfer()

    /// - Throws: `TransferError`, after the bytes that came have been counted; `SystemError`; the
    ///   errors of the store.
    func run(_ claimed: Download) async throws {
        var download = claimed
        let file = try PartialFile(folder.partial(download.id), breakpoint: download.bytesDone)
        if file.keptCount < download.bytesDone {
            download.bytesDone = file.keptCount
            try await store.begin(download)
        }
        if download.bytesTotal == nil || download.bytesDone != download.bytesTotal {
            try await fetch(&download, to: file)
        }
        var manual: Data?
        if let page = download.page {
            let transfer = try current.replace(network.transfer(page))
            manual = try await transfer.data(maximumByteCount: Self.maximumManualByteCount)
        }
        if try await store.finish(download.id, manual: manual) { try folder.settle(download) }
    }

    private func fetch(_ download: inout Download, to file: PartialFile) async throws {
        let start = download.version == nil ? 0 : download.bytesDone
        let transfer = try current.replace(
            network.transfer(download.url, from: start, ifVersion: download.version))
        defer { transfer.stop() }
        let head = try await transfer.head()
        if head.canResume { transfer.limitWaiting() }
        try await accept(head, &download, file)
        var progress = Progress(download, file, store, stepByteCount)
        do {
            for try await piece in transfer.bytes { try await progress.add(piece) }
        } catch let error as TransferError {
            try await progress.save()
            throw error
        }
        try await progress.save()
        download.bytesDone = progress.bytesDone
        // Without a length, the end of the answer is the end of the file.
        guard progress.bytesDone == download.bytesTotal ?? progress.bytesDone else {
            throw TransferError.lost("the answer ends early")
        }
    }

    /// Goes on at the breakpoint if the server does, and begins again otherwise.
    private func accept(
        _ head: ResponseHead, _ download: inout Download, _ file: PartialFile
    ) async throws {
        let isRest =
            head.status == 206 && head.start == download.bytesDone
            && head.version == download.version
            && (head.total ?? download.bytesTotal) == download.bytesTotal
        if isRest { return }
        // 416 means that the file ends before the breakpoint.
        guard head.status == 200 || head.status == 206 || head.status == 416 else {
            throw TransferError.status(head.status)
        }
        let isWhole = head.status == 200
        download.bytesDone = 0
        download.bytesTotal = isWhole ? head.total : nil
        download.version = isWhole ? head.version : nil
        try await store.begin(download)
        try file.clear()
        if !isWhole { throw TransferError.otherVersion }
    }
}

/// Counts the bytes of an attempt, and moves the breakpoint after those that are on disk.
private struct Progress {
    private(set) var bytesDone: Int
    private var savedCount: Int
    private let id: UUID
    private let file: PartialFile
    private let store: DownloadStore
    private let stepByteCount: Int
    private var lastSave = ContinuousClock.now

    init(_ download: Download, _ file: PartialFile, _ store: DownloadStore, _ stepByteCount: Int) {
        (id, self.file, self.store) = (download.id, file, store)
        (bytesDone, savedCount) = (download.bytesDone, download.bytesDone)
        self.stepByteCount = stepByteCount
    }

    mutating func add(_ piece: Data) async throws {
        try file.write(piece, at: bytesDone)
        bytesDone += piece.count
        let isSlow = ContinuousClock.now - lastSave > .seconds(1)
        if bytesDone - savedCount >= stepByteCount || isSlow { try await save() }
    }

    mutating func save() async throws {
        guard bytesDone > savedCount else { return }
        try await file.sync()
        try await store.report(id, bytesDone: bytesDone)
        savedCount = bytesDone
        lastSave = .now
    }
}
