import Coffer
import Workloads

/// Rows along references with `Store` and `Record`: LEFT JOIN, children, and groups.
struct References {
    private static let children = 10
    private let run: Run

    init(_ run: Run) { self.run = run }

    /// Each child and its parent, if it has one.
    func join() throws {
        try onFilled { store in
            try run.samples {
                try store.read { tx in
                    try tx.fetch(Child.all.leftJoining(\.parent, to: Parent.all))
                }
            } sameAs: { rows in
                var check = Check()
                for (child, parent) in rows { check.add(child, of: parent) }
                return check
            }
        }
    }

    /// Each wanted parent with all its children.
    func include() throws {
        let wanted = Parent.where(\.isWanted).order(by: \.id)
        try onFilled { store in
            try run.samples {
                try store.read { tx in
                    try tx.fetch(wanted.including(all: Child.all, by: \.parent))
                }
            } sameAs: { rows in
                var check = Check()
                for (parent, children) in rows {
                    check.add(Int64(parent.id), parent.name)
                    for child in children { check.add(child, of: parent) }
                }
                return check
            }
        }
    }

    /// The number of children of each parent, and the sum and the mean of their sizes.
    func group() throws {
        let groups = Child.where(\.parent != nil).group(by: \.parent)
        try onFilled { store in
            try run.samples {
                try store.read { tx in
                    try tx.fetch(groups, .count, .sum(\.size), .average(\.size))
                }
            } sameAs: { rows in
                var check = Check()
                for (parent, count, sum, mean) in rows {
                    check.add([Int64(parent ?? 0), Int64(count), Int64(sum)], mean)
                }
                return check
            }
        }
    }

    private func onFilled(_ body: (Store) throws -> Void) throws {
        run.removeFile()
        let filling = try run.openStore()
        try filling.write { tx in
            for id in 1...(run.rows / Self.children) {
                try tx.insert(
                    Parent(id: id, name: "the parent with number \(id)", isWanted: id % 2 == 1))
            }
            for id in 1...run.rows {
                let parent = run.shuffled(id - 1) / Self.children + 1
                try tx.insert(
                    Child(
                        id: id, parent: id % 7 == 0 ? nil : parent,
                        name: "the child with number \(id)", size: id % 100))
            }
        }
        try filling.close()
        let store = try run.openStore()
        try body(store)
        try store.close()
    }
}

private struct Parent: Record {
    static let access = Item.access
    var id: Int
    var name: String
    var isWanted: Bool
}

private struct Child: Record {
    static let access = Item.access
    static var indexes: [Index<Self>] { [Index(\.parent)] }
    static var references: [Reference<Self>] { [Reference(\.parent, to: Parent.self)] }
    var id: Int
    var parent: Int?
    var name: String
    var size: Int
}

extension Check {
    fileprivate mutating func add(_ child: Child, of parent: Parent?) {
        add(Int64(child.id), child.name, [Int64(child.size)], parent.map { [$0.name] } ?? [])
    }
}
