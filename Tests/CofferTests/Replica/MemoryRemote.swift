import Foundation
import Synchronization
import Workload

@testable import Coffer
@testable import CofferReplica

/// A remote in memory, which fails, forgets to answer, or lies, as it is told.
final class MemoryRemote: Remote {
    struct Defects: Sendable {
        /// Of a hundred calls, so many fail: half of them after they had their effect.
        var failurePercentage = 0
        /// Of a hundred objects whose name is taken, so many take it all the same.
        var overwritePercentage = 0
    }

    private struct State {
        var objects: [String: [UInt8]] = [:]
        var random: SeededGenerator
        var now = Date(timeIntervalSince1970: 1_900_000_000)
        var readCount = 0
        var isDown = false
        var deniesDeletion = false
        var isDenied: (@Sendable (String) -> Bool)?
        var listed: (@Sendable ([String]) -> [String])?
        var willRead: (@Sendable () async -> Void)?
    }

    private let defects: Defects
    private let state: Mutex<State>
    let place: String
    /// Whether an answer to a read has a time, as that of a service; that of a folder has none.
    private let tellsTimeOfReads: Bool

    init(
        _ defects: Defects = Defects(), seed: UInt64 = 1, place: String = "memory",
        tellsTimeOfReads: Bool = true
    ) {
        self.defects = defects
        state = Mutex(State(random: SeededGenerator(seed: seed)))
        (self.place, self.tellsTimeOfReads) = (place, tellsTimeOfReads)
    }

    /// How many objects or parts of them were read.
    var readCount: Int { state.withLock { $0.readCount } }

    var objects: [String: [UInt8]] {
        get { state.withLock { $0.objects } }
        set { state.withLock { $0.objects = newValue } }
    }

    /// Whether every call fails, without an effect.
    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }

    var deniesDeletion: Bool {
        get { state.withLock { $0.deniesDeletion } }
        set { state.withLock { $0.deniesDeletion = newValue } }
    }

    /// Makes the next object, and answers that this is not allowed.
    func denyAfterNextCreate() { denyAfterCreate { _ in true } }

    /// Makes the next object of such a name, and answers that this is not allowed.
    func denyAfterCreate(_ isDenied: @escaping @Sendable (String) -> Bool) {
        state.withLock { $0.isDenied = isDenied }
    }

    /// Answers to each list what this makes of it: a service may forget names, or be late.
    func list(_ listed: (@Sendable ([String]) -> [String])?) {
        state.withLock { $0.listed = listed }
    }

    /// Makes each read wait for a closure.
    func beforeReads(_ willRead: (@Sendable () async -> Void)?) {
        state.withLock { $0.willRead = willRead }
    }

    func advance(_ seconds: TimeInterval) { state.withLock { $0.now += seconds } }

    func create(
        _ name: String, _ bytes: [UInt8]
    ) async throws -> RemoteAnswer<RemoteCreation> {
        await Task.yield()
        return try state.withLock { state in
            let failure = try self.failure(&state)
            var creation = RemoteCreation.created
            if state.objects[name] != nil,
                Int.random(in: 0..<100, using: &state.random) >= defects.overwritePercentage
            {
                creation = .exists
            } else {
                state.objects[name] = bytes
            }
            if failure { throw CocoaError(.fileReadUnknown) }
            if state.isDenied?(name) == true {
                state.isDenied = nil
                throw StoreError(.remoteDenied, "the clock of the caller is wrong")
            }
            return RemoteAnswer(creation, time: state.now)
        }
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        await Task.yield()
        await state.withLock(\.willRead)?()
        return try state.withLock { state in
            if try failure(&state) { throw CocoaError(.fileReadUnknown) }
            state.readCount += 1
            let object = state.objects[name]
            let part = object.map { bytes in
                range.map { Array(bytes[$0.clamped(to: 0..<bytes.count)]) } ?? bytes
            }
            return RemoteAnswer(part, time: tellsTimeOfReads ? state.now : nil)
        }
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        let names = objects.keys.filter { $0.hasPrefix(prefix) && $0 > name }.sorted()
        return state.withLock(\.listed)?(names) ?? names
    }

    func delete(_ name: String) async throws {
        guard !deniesDeletion else {
            throw StoreError(.remoteDenied, "the caller may not delete")
        }
        objects[name] = nil
    }

    /// Whether a call fails after its effect; throws if it fails before.
    private func failure(_ state: inout State) throws -> Bool {
        if state.isDown { throw CocoaError(.fileReadUnknown) }
        guard Int.random(in: 0..<100, using: &state.random) < defects.failurePercentage else {
            return false
        }
        if Bool.random(using: &state.random) { throw CocoaError(.fileReadUnknown) }
        return true
    }
}

extension ReplicaKeys {
    static func testing(_ byte: UInt8 = 7) -> ReplicaKeys {
        ReplicaKeys(
            SecretBytes([UInt8](repeating: byte, count: 32)),
            replica: [UInt8](repeating: 9, count: 16))
    }
}

extension RemoteAccess {
    /// Asks again at once.
    static func testing(_ remote: any Remote) -> RemoteAccess {
        RemoteAccess(remote, patience: Patience(sleep: { _ in await Task.yield() }))
    }
}

extension ReplicaOptions {
    /// Passes only when a test asks for one, and no pause before another try.
    static var testing: ReplicaOptions {
        var options = ReplicaOptions()
        options.interval = .seconds(3600)
        options.owner = "tests"
        options.patience.sleep = { _ in await Task.yield() }
        return options
    }
}

extension ReplicaRecord {
    /// A record with one page that has the number in each of its bytes.
    static func numbered(_ number: UInt32) -> ReplicaRecord {
        ReplicaRecord(
            time: Date(timeIntervalSince1970: 1_800_000_000),
            pages: [
                Page(
                    number: number,
                    bytes: [UInt8](repeating: UInt8(number & 255), count: 512)[...])
            ])
    }
}
