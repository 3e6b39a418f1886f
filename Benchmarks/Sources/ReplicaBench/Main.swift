import Coffer
import CofferReplica
import Workloads

/// Replicas of stores: `bench-replica <measurement> <store> <remote> [<number> …]`.
///
/// Each measurement is a process, and prints its figures as JSON objects, one a line.
@main struct Main {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        let numbers = words.dropFirst(3).compactMap { Int($0) }
        guard words.count >= 3, let place = try? Place(path: words[1], folder: words[2]) else {
            throw Missing()
        }
        switch (words[0], numbers.count) {
        case ("fill", 1): try Filling(place).run(rowCount: numbers[0])
        case ("commits", 3):
            try await Commits(place, rowCount: numbers[0])
                .run(seconds: numbers[1], rounds: numbers[2])
        case ("copy", 0): try await Passes(place).copy()
        case ("ship", 2): try await Passes(place).ship(numbers[0], of: numbers[1])
        case ("pass", 2): try await Passes(place).pass(numbers[0], of: numbers[1])
        case ("idle", 1): try await Passes(place).idle(seconds: numbers[0])
        case ("snapshot", 0): try await Snapshots(place).run()
        case ("download", 0): try await Restores(place).download()
        case ("restore", 0): try await Restores(place).restore()
        case ("fleet", 2): try await Fleet(place, count: numbers[0]).run(seconds: numbers[1])
        default: throw Missing()
        }
    }
}
