import Coffer

/// Reads the parts of a snapshot.
struct SnapshotParts {
    let reader: LogReader
    let index: SnapshotIndex

    /// How many parts are read at the same time.
    private static let readAheadCount = 4

    /// Calls `visit` with the pages of each part, in the order of the parts.
    ///
    /// - Throws: `.remoteDamaged` if a part is missing, or is not the one that the snapshot has;
    ///   errors of the remote and of `visit`.
    func readAll(_ visit: ([ReplicaRecord.Page]) async throws -> Void) async throws {
        let parts = index.parts
        for start in stride(from: 0, to: parts.count, by: Self.readAheadCount) {
            let some = parts[start..<min(start + Self.readAheadCount, parts.count)]
            let pages = try await withThrowingTaskGroup(
                of: (Int, [ReplicaRecord.Page]).self
            ) { group in
                for part in some {
                    group.addTask { (part.name.index, try await self.pages(of: part)) }
                }
                return try await group.reduce(into: [Int: [ReplicaRecord.Page]]()) { all, one in
                    all[one.0] = one.1
                }
            }
            for part in some { try await visit(pages[part.name.index] ?? []) }
        }
    }

    private func pages(of part: SnapshotIndex.Part) async throws -> [ReplicaRecord.Page] {
        let name = part.name.name
        guard let bytes = try await reader.access.read(name) else {
            throw StoreError(
                .remoteDamaged, "\(name) is missing",
                hint: "Somebody has deleted it, or the service has lost it.")
        }
        let sealed = SealedRecord(bytes, at: part.name.begin, name: name)
        guard sealed.hash == part.hash else {
            throw StoreError(
                .remoteDamaged, "\(name) is not as its owner wrote it",
                hint: "Somebody has changed the object, or the service has damaged it.")
        }
        return try sealed.open(by: reader.keys).1.pages
    }
}
