/// Identifies the state of all pages of a store. If two are equal and certain, nothing was
/// committed in between.
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

    /// Whether it is sure to change with each commit. A file may get the same time twice, after a
    /// clock was set back.
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
    /// - Parameter stamp: Of the file, which must be old.
    static func file(_ stamp: FileStamp) -> PageVersion { PageVersion(.file(stamp)) }
}
