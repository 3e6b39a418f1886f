/// The observers of a store by the tables that concern them, so that a commit costs no more for
/// observers of other tables.
struct ObserverIndex<Observer: AnyObject> {
    private var observers: [ObjectIdentifier: (observer: Observer, tables: TableSet)] = [:]
    private var byTable: [SQLText: Set<ObjectIdentifier>] = [:]
    /// The observers that every table concerns.
    private var ofEverything: Set<ObjectIdentifier> = []

    var count: Int { observers.count }

    var all: [Observer] { observers.values.map(\.observer) }

    /// The tables that concern any of the observers, without those that every table concerns.
    var tables: Set<SQLText> { Set(byTable.keys) }

    mutating func add(_ observer: Observer, tables: TableSet) {
        let id = ObjectIdentifier(observer)
        observers[id] = (observer, tables)
        if tables.isEverything { ofEverything.insert(id) }
        for table in tables.names { byTable[table, default: []].insert(id) }
    }

    mutating func remove(_ id: ObjectIdentifier) {
        guard let (_, tables) = observers.removeValue(forKey: id) else { return }
        ofEverything.remove(id)
        for table in tables.names {
            byTable[table]?.remove(id)
            if byTable[table]?.isEmpty == true { byTable[table] = nil }
        }
    }

    /// Changes which tables concern an observer. Does nothing if it was removed.
    mutating func move(_ observer: Observer, to tables: TableSet) {
        let id = ObjectIdentifier(observer)
        guard let known = observers[id], known.tables != tables else { return }
        remove(id)
        add(observer, tables: tables)
    }

    /// The observers that one of these tables concerns.
    ///
    /// - Complexity: O(*tables* + *found observers*). O(*observers*) if `tables` stands for
    ///   everything.
    func concerned(by tables: TableSet) -> [Observer] {
        if tables.isEmpty { return [] }
        if tables.isEverything { return all }
        var found = ofEverything
        for table in tables.names { found.formUnion(byTable[table] ?? []) }
        return found.compactMap { observers[$0]?.observer }
    }
}
