import Foundation
import Workload

@testable import Coffer

/// Kills one of five processes that use a store with a keyring, at random moments: two write, one
/// reads, two rotate the key. The others go on, and the killed one is started again.
///
/// After each file the store opens by its credential, every page is under one key, each write that
/// was reported is there, and none is half done. No process may report an error.
final class RotationRaceHarness {
    private enum Role: CaseIterable {
        case firstWriter, secondWriter, reader, rotator, secondRotator

        var worker: Int? {
            switch self {
            case .firstWriter: 0
            case .secondWriter: 1
            default: nil
            }
        }

        /// Whether it tells something all the time.
        var isHeard: Bool { self != .rotator && self != .secondRotator }
    }

    private let journalMode: Configuration.JournalMode
    private var random: SeededGenerator
    private var tally = Tally()
    private var problems: [String] = []
    /// The last reported write of each worker.
    private var told = [0, 0]
    private var rotationCount = 0

    /// How often a file is used: the more it holds, the longer a check takes.
    private static let killCountOfFile = 25

    init(_ journalMode: Configuration.JournalMode, seed: UInt64) {
        self.journalMode = journalMode
        random = SeededGenerator(seed: seed)
    }

    func run(killCount: Int) throws -> Tally {
        while tally.triedCount < killCount {
            try runOnFile(killCount: min(Self.killCountOfFile, killCount - tally.triedCount))
        }
        if rotationCount < killCount / 10 {
            tally.addLate("only \(rotationCount) rotations ended")
        }
        return tally
    }

    private func runOnFile(killCount: Int) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let store = try open(path, mode: .createIfMissing)
        try store.write { tx in
            try Ledger.create(tx)
            // So that a rotation takes a while.
            try tx.execute("CREATE TABLE filler(v)")
            for _ in 0..<40 { try tx.execute("INSERT INTO filler VALUES (randomblob(20000))") }
        }
        try store.close()
        told = [0, 0]
        var peers: [Role: Peer] = [:]
        for role in Role.allCases { peers[role] = try start(role, path) }
        for number in 0..<killCount {
            for (role, peer) in peers where role.isHeard { hear(role, peer, lineCount: 1) }
            // Not each time: a rotator may wait for the other one for long.
            if number % 5 == 4 {
                let rotator: Role = Bool.random(using: &random) ? .rotator : .secondRotator
                if let peer = peers[rotator] { hear(rotator, peer, lineCount: 1) }
            }
            usleep(UInt32.random(in: 0..<150_000, using: &random))
            let role = Role.allCases.randomElement(using: &random) ?? .rotator
            if let peer = peers[role] {
                peer.kill()
                hear(role, peer, lineCount: .max)
            }
            if number + 1 < killCount { peers[role] = try start(role, path) }
            tally.add(problems, "\(journalMode), kill \(number) of \(role)")
            problems = []
        }
        for (role, peer) in peers {
            peer.kill()
            hear(role, peer, lineCount: .max)
        }
        try check(path)
        for problem in problems { tally.addLate("\(journalMode): \(problem)") }
        problems = []
    }

    private func start(_ role: Role, _ path: String) throws -> Peer {
        let place = [path, journalMode.description]
        let peer: Peer
        switch role {
        case .firstWriter, .secondWriter:
            peer = try Peer(["rotation-writer", "\(role.worker ?? 0)"] + place)
        case .reader: peer = try Peer(["rotation-reader"] + place)
        case .rotator, .secondRotator: peer = try Peer(["rotation"] + place)
        }
        if let line = peer.line(), line != "ready" { problems.append("\(role): \(line)") }
        return peer
    }

    /// Takes what a process has reported.
    private func hear(_ role: Role, _ peer: Peer, lineCount: Int) {
        var count = 0
        while count < lineCount, let line = peer.line() {
            count += 1
            guard let number = Int(line) else {
                problems.append("\(role): \(line)")
                continue
            }
            if let worker = role.worker { told[worker] = max(told[worker], number) }
            if !role.isHeard { rotationCount += 1 }
        }
    }

    private func open(_ path: String, mode: OpenMode) throws -> Store {
        try Store(
            path: path, key: .keyring(.keyFile([UInt8](repeating: 42, count: 32))), mode: mode,
            configuration: .testing(journalMode))
    }

    private func check(_ path: String) throws {
        let store = try open(path, mode: .mustExist)
        let (contents, integrityProblems) = try store.read { tx in
            (try Ledger.contents(tx), try tx.integrityProblems())
        }
        problems += contents.problems + integrityProblems
        for worker in told.indices {
            let count = contents.entries.count { $0.worker == worker }
            if count != contents.count(of: worker) || count < told[worker] {
                problems.append("worker \(worker) told of \(told[worker]), and \(count) are there")
            }
        }
        if try !store.verify().isGood { problems.append("pages are not under the key") }
        let epoch = try store.keys.keyring.epoch
        if try store.keyID() != store.keys.keyring.keyID {
            problems.append("the keyring says epoch \(epoch), and the file has another key")
        }
        try store.close()
    }
}
