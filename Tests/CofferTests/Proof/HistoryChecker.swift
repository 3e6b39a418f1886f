import Workload

/// Whether a history of registers can be explained by an order in which each call takes effect at
/// one moment between its start and its end.
///
/// Each register is checked by itself: a history is linearizable if and only if that of each object
/// is ([Herlihy and Wing](https://doi.org/10.1145/78969.78972), theorem 1). For one register the
/// algorithm is that of Wing and Gong with the memory that [Lowe](https://doi.org/10.1002/cpe.3928)
/// added: it tries every call that started before any unexplained call ended, goes back when
/// nothing fits, and never tries the same calls with the same value twice.
struct HistoryChecker {
    /// The value of every register at first.
    var initial = 0

    /// The registers whose history cannot be explained.
    func inexplicableKeys(_ operations: [RegisterCall]) -> [Int] {
        Dictionary(grouping: operations, by: \.key)
            .filter { !isLinearizable($0.value) }.map(\.key).sorted()
    }

    /// Checks the calls on one register.
    func isLinearizable(_ operations: [RegisterCall]) -> Bool {
        var search = Search(operations, value: initial)
        return search.run()
    }

    private struct Search {
        /// Sorted by their start.
        private let operations: [RegisterCall]
        private var isDone: [Bool]
        private var value: Int
        private var tried: Set<State> = []
        private var path: [Step] = []

        private struct State: Hashable {
            let isDone: [Bool]
            let value: Int
        }

        private struct Step {
            let index: Int
            let valueBefore: Int
        }

        init(_ operations: [RegisterCall], value: Int) {
            self.operations = operations.sorted { $0.start < $1.start }
            isDone = Array(repeating: false, count: operations.count)
            self.value = value
        }

        mutating func run() -> Bool {
            var next = 0
            while path.count < operations.count {
                if let index = candidate(from: next) {
                    next = enter(index) ? 0 : index + 1
                } else if let step = path.popLast() {
                    isDone[step.index] = false
                    value = step.valueBefore
                    next = step.index + 1
                } else {
                    return false
                }
            }
            return true
        }

        /// The next call that may be the first of the calls that are not done: none of them has
        /// ended before it starts.
        private func candidate(from start: Int) -> Int? {
            let open = operations.indices.lazy.filter { !isDone[$0] }
            guard let earliestEnd = open.map({ operations[$0].end }).min() else { return nil }
            return open.first { $0 >= start && operations[$0].start <= earliestEnd }
        }

        /// Returns `false` if the call does not fit the value, or this was tried.
        private mutating func enter(_ index: Int) -> Bool {
            guard let result = Self.apply(operations[index].action, to: value) else { return false }
            isDone[index] = true
            guard tried.insert(State(isDone: isDone, value: result)).inserted else {
                isDone[index] = false
                return false
            }
            path.append(Step(index: index, valueBefore: value))
            value = result
            return true
        }

        /// The value after the call; `nil` if it would have answered differently.
        private static func apply(_ action: RegisterCall.Action, to value: Int) -> Int? {
            switch action {
            case .read(let seen): seen == value ? value : nil
            case .write(let new): new
            case .add(let number, let sum): value + number == sum ? sum : nil
            case .exchange(let old, let new, true): old == value ? new : nil
            case .exchange(let old, _, false): old == value ? nil : value
            case .take(let seen): seen == value ? 0 : nil
            }
        }
    }
}
