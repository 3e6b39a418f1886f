/// What the connections of a store do at one moment. Only the store itself knows the next one.
public struct StoreStatistics: Sendable, Hashable {
    /// Connections that read, opened on demand; at most `Configuration.readerCountMax`. Without a
    /// write-ahead log there are none: reads take their turn on the writer.
    public let openReaderCount: Int
    /// Of those, how many wait for the next read.
    public let idleReaderCount: Int
    /// Reads that wait in line for a connection.
    public let waitingReadCount: Int
    /// Writes, and without a write-ahead log reads, that wait in line behind the one that runs.
    public let waitingWriteCount: Int

    /// Connections that somebody reads with.
    public var readerInUseCount: Int { openReaderCount - idleReaderCount }
}
