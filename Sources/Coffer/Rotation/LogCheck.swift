/// Checks the committed frames of the write-ahead log; runs while the write lock is held.
struct LogCheck {
    let log: LogFile

    /// Counts frames in the report; returns the pages whose frames fail, 0 where that is unknown.
    func run(
        _ pages: borrowing RawPages, _ report: inout VerificationReport
    ) -> [Int] {
        let committed = log.committedFrameCount()
        guard committed > 0 else { return [] }
        guard let header = log.bytes(at: 0, count: WriteAheadLog.headerByteCount),
            var state = WriteAheadLog(header: header), state.pageByteCount == pages.byteCount
        else {
            // The index says that there are frames, but the log cannot be read.
            return [0]
        }
        var damaged: [Int] = []
        for index in 0..<committed {
            let frame = log.bytes(
                at: state.offset(ofFrame: index), count: state.frameByteCount)
            guard let frame, let page = state.page(ofNextFrame: frame) else {
                // The checksum runs on from frame to frame: nothing behind can be told.
                damaged.append(frame.map { WriteAheadLog.pageNumber(ofFrame: $0[...]) } ?? 0)
                break
            }
            if !pages.authenticates(page.content, number: page.number) {
                damaged.append(page.number)
            }
            report.frameCount += 1
        }
        return damaged
    }
}
