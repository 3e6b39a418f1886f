import Coffer

/// Reads the parts of a snapshot.
struct SnapshotParts {
    let reader: LogReader
    let index: SnapshotIndex

    /// How many parts are read at the same time.
    private static let readAheadCount = 4

    /// The pages of some parts from one on, in their order; empty after the last part.
    ///
    /// - Parameter first: The number of the first part, from 0.
    /// - Throws: `.remoteDamaged` if a part is missing, or is not the one that the snapshot has;
    ///   errors of the remote.
    func pages(from first: Int) async throws -> [[ReplicaRecord.Page]] {
        let numbers = first..<min(first + Self.readAheadCount, max(first, index.partCount))
        let pages = try await withThrowingTaskGroup(of: (Int, [ReplicaRecord.Page]).self) { group in
            for part in numbers.compactMap(index.part) {
                group.addTask { (part.name.index, try await self.pages(of: part)) }
            }
            return try await group.reduce(into: [Int: [ReplicaRecord.Page]]()) { all, one in
                all[one.0] = one.1
            }
        }
        return numbers.map { pages[$0] ?? [] }
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
