/// Identifies the state of all pages of a store: two are equal only if nothing was committed in
/// between.
package struct PageVersion: Equatable, Sendable {
    private enum State: Equatable {
        case log(salt: [UInt8], frameCount: Int)
        case firstPage(tag: [UInt8])
        case file(FileStamp)
    }

    private let state: State

    private init(_ state: State) {
        self.state = state
    }

    /// Whether it is sure to change with each commit. The time of a file may stay the same: its
    /// clock was set back, or a program has set the time.
    package var isCertain: Bool {
        if case .file = state { false } else { true }
    }

    /// With frames in the WAL, each commit adds some. A WAL that restarts has new salts.
    static func log(_ index: WALFile.Index) -> PageVersion {
        PageVersion(.log(salt: index.salt, frameCount: index.committedFrameCount))
    }

    /// Without WAL, each commit changes the first page.
    static func firstPage(tag: [UInt8]) -> PageVersion { PageVersion(.firstPage(tag: tag)) }

    /// While the WAL has no frame, all pages are in the main file. Every such WAL may have the same
    /// salts, so the file tells.
    ///
    /// - Returns: `nil` if the file was changed so lately that its next change may get the same
    ///   time.
    static func file(_ location: FileLocation) -> PageVersion? {
        guard let found = try? FileLocation.information(location.path) else { return nil }
        let stamp = FileStamp(found)
        return stamp.isOld ? PageVersion(.file(stamp)) : nil
    }
}
