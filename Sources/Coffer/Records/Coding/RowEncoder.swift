import CSQLCipher

/// Encodes records into the parameters of a statement, one per column.
///
/// One encoder serves all statements of a record type on one connection.
final class RowEncoder: Encoder {
    let plan: RecordPlan
    let state: UnsafeMutablePointer<BindingState>
    /// Binds records without their `encode(to:)`; `nil` if that is used.
    private let stored: StoredProperties?
    /// The columns whose dates count from 2001.
    let since2001: ColumnSet
    /// For types that encode a single value.
    let scalar = ScalarEncoder()
    /// The first failure in a requirement of `Encoder` that cannot throw.
    private(set) var failure: StoreError?
    /// The columns that the current record encodes piece by piece, by entry.
    private var trees: [Int32: EncodedTree] = [:]
    /// The columns of the current record whose `Lazy` value is not loaded.
    var unloaded: Set<Int> = []
    /// Those of the last record that was refused for them.
    var lastUnloaded: Set<Int> = []
    /// The columns of `Lazy` properties that the type's own `encode(to:)` has to name.
    let lazyColumns: Set<Int>
    /// Those that the current record has encoded, be it as NULL.
    var encodedLazy: Set<Int> = []
    private var holders: [ObjectIdentifier: AnyObject] = [:]
    private let positions: [String: Int32]
    /// The columns that get no value, whatever a record encodes for them.
    private let unchosen: Set<Int32>
    /// One bit for each column that gets a value; `nil` for more than 64 columns, and if each
    /// record has to be looked at after it is encoded.
    private let allColumns: UInt64?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// - Parameters:
    ///   - stored: The stored properties of the record type; `nil` binds by its `encode(to:)`.
    ///   - chosen: The positions of the columns that get a value; `nil` for all.
    ///   - isUTF16: Whether the file stores texts as UTF-16.
    ///   - since2001: The columns whose dates count from 2001.
    init(
        plan: RecordPlan, stored: StoredProperties? = nil, chosen: Set<Int>? = nil,
        isUTF16: Bool = false, since2001: ColumnSet
    ) {
        self.plan = plan
        self.since2001 = since2001
        self.stored = chosen.flatMap { stored?.only($0) } ?? stored
        let columns = plan.columns.indices
        let chosen = chosen ?? Set(columns)
        unchosen = Set(columns.filter { !chosen.contains($0) }.map { Int32($0) })
        lazyColumns =
            stored == nil && plan.hasLazy ? chosen.filter { plan.columns[$0].isLazy } : []
        allColumns =
            columns.count > 64 || !lazyColumns.isEmpty
            ? nil : chosen.reduce(0) { $0 | 1 << UInt64($1) }
        positions = Dictionary(
            plan.columns.enumerated().map { ($0.element.name, Int32($0.offset)) },
            uniquingKeysWith: { first, _ in first })
        state = .allocate(capacity: 1)
        state.initialize(to: BindingState())
        state.pointee.isUTF16 = isUTF16
        state.pointee.since2001 = since2001.first
        // Unretained, because this object's `deinit` frees the state.
        state.pointee.owner = Unmanaged.passUnretained(self)
    }

    /// An encoder that binds these columns and ignores the others.
    func only(_ positions: [Int]) -> RowEncoder {
        RowEncoder(
            plan: plan, stored: stored, chosen: Set(positions), isUTF16: state.pointee.isUTF16,
            since2001: since2001)
    }

    deinit {
        state.pointee.free()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// Binds a record to a statement whose parameters are numbered as the plan's columns.
    ///
    /// The statement must be stepped before the next call of `bind` for any statement, because the
    /// arena holds its texts and blobs only until then.
    @inline(__always)
    func bind<R: Record>(_ record: R, to statement: Statement) throws(StoreError) {
        try bind(to: statement) {
            if let stored {
                try withUnsafePointer(to: record) { try stored.bind($0, state) }
            } else {
                // Not through a pointer, which would copy the record.
                try record.encode(to: self)
            }
        }
    }

    /// Binds a record in place, without a copy.
    @inline(__always)
    func bind<R: Record>(
        _ record: UnsafePointer<R>, to statement: Statement
    ) throws(StoreError) {
        try bind(to: statement) {
            if let stored {
                try stored.bind(record, state)
            } else {
                try record.pointee.encode(to: self)
            }
        }
    }

    @inline(__always)
    private func bind(to statement: Statement, _ encode: () throws -> Void) throws(StoreError) {
        let raw = try statement.pointer()
        guard state.pointee.statement == nil else { throw nested() }
        if allColumns == nil { sqlite3_clear_bindings(raw) }
        state.pointee.begin(raw)
        do {
            try encode()
            if state.pointee.hasTrees { try bindTrees() }
        } catch {
            state.pointee.statement = nil
            throw wrapped(error)
        }
        state.pointee.statement = nil
        if state.pointee.bound != allColumns || state.pointee.isRefused { try finish(raw) }
    }

    /// Throws a recorded failure. Otherwise binds NULL to columns without a value, because
    /// parameters keep the values of the row before.
    @inline(never)
    private func finish(_ raw: OpaquePointer) throws(StoreError) {
        if !lazyColumns.isEmpty { refuseOmitted() }
        if state.pointee.isRefused { throw takeRefusal() }
        guard let allColumns else { return }
        var missing = allColumns & ~state.pointee.bound
        while missing != 0 {
            sqlite3_bind_null(raw, Int32(truncatingIfNeeded: missing.trailingZeroBitCount) &+ 1)
            missing &= missing &- 1
        }
    }

    @inline(never)
    private func takeRefusal() -> StoreError {
        let notLoaded = takeUnloaded()
        guard let failure else { return notLoaded }
        (self.failure, lastUnloaded) = (nil, [])
        return failure
    }

    /// The tree for a column that the record encodes piece by piece.
    func tree(_ name: String) -> EncodedTree {
        let entry = entry(name)
        if entry == KeyMap.unchosen { return EncodedTree() }
        note(entry)
        if entry < 0 || entry & 3 != Storage.text.rawValue {
            failure = failure ?? (entry < 0 ? unknownKey(name) : wrongStorage(entry, .text))
            state.pointee.isRefused = true
            return EncodedTree()
        }
        let tree = trees[entry] ?? EncodedTree()
        trees[entry] = tree
        state.pointee.hasTrees = true
        return tree
    }

    @inline(never)
    private func bindTrees() throws {
        defer { trees.removeAll() }
        for (entry, tree) in trees {
            do {
                try state.pointee.bindText(try JSONText.data(tree), entry)
            } catch {
                throw failure(error, entry >> 2)
            }
        }
    }

    @inline(never)
    func nested() -> StoreError {
        StoreError(
            .misuse, "\(plan.typeName) writes a record of its own type while it is encoded",
            table: plan.table)
    }

    @inline(never)
    private func wrapped(_ error: any Error) -> StoreError {
        let first = failure
        failure = nil
        (unloaded, encodedLazy) = ([], [])
        trees.removeAll()
        if let first { return first }
        if let known = error as? StoreError { return known }
        return StoreError(
            .mismatch, "\(plan.typeName) could not be encoded", table: plan.table, cause: error)
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if state.pointee.keyType == ObjectIdentifier(type), let holder = state.pointee.holder {
            // The holder was made for this key type: see `makeContainer`.
            return Unmanaged<ContainerHolder<KeyedEncodingContainer<Key>>>.fromOpaque(holder)
                ._withUnsafeGuaranteedRef { $0.copy() }
        }
        return makeContainer(type)
    }

    @inline(never)
    private func makeContainer<Key: CodingKey>(
        _ type: Key.Type
    ) -> KeyedEncodingContainer<Key> {
        typealias Holder = ContainerHolder<KeyedEncodingContainer<Key>>
        if let holder = holders[ObjectIdentifier(type)] as? Holder { return holder.copy() }
        let map = KeyMap.make(for: type, state: UnsafeMutableRawPointer(state))
        let all = RowKeyedEncoding<Key>(keys: map)
        let container =
            unchosen.isEmpty && lazyColumns.isEmpty
            ? KeyedEncodingContainer(all) : KeyedEncodingContainer(ChosenKeyedEncoding(all: all))
        let holder = Holder(container, map)
        holders[ObjectIdentifier(type)] = holder
        if state.pointee.keyType == nil {
            state.pointee.keyType = ObjectIdentifier(type)
            // Unretained: `holders` keeps it as long as the state lives.
            state.pointee.holder = UnsafeRawPointer(Unmanaged.passUnretained(holder).toOpaque())
        }
        return holder.copy()
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        refuse("an unkeyed container").unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        refuse("a single-value container").singleValueContainer()
    }

    func refuse(_ container: String) -> InertEncoder {
        failure = failure ?? StoreError.noColumns(for: container).with(table: plan.table)
        state.pointee.isRefused = true
        return InertEncoder()
    }

    // MARK: Failures

    /// The entry of a key in the key map: column and storage in one number.
    func entry(_ name: String) -> Int32 {
        guard let position = positions[name] else { return KeyMap.absent }
        return unchosen.contains(position) ? KeyMap.unchosen : entry(at: Int(position))
    }

    func entry(at position: Int) -> Int32 {
        Self.entry(position, plan.columns[position].storage)
    }

    static func entry(_ position: Int, _ storage: Storage) -> Int32 {
        Int32(position) << 2 | storage.rawValue
    }

    func unknownKey(_ name: String) -> StoreError {
        StoreError(
            .mismatch, "\(plan.typeName) encodes a key that it does not decode",
            hint: "Decode it too, or declare static var example: Self? to learn the columns from "
                + "what it encodes.",
            table: plan.table, column: name)
    }

    func wrongStorage(_ entry: Int32, _ found: Storage) -> StoreError {
        let column = plan.columns[Int(entry >> 2)]
        return StoreError(
            .mismatch,
            "the column is \(column.storage.sqlType), and \(plan.typeName) encodes "
                + "\(found.sqlType)",
            table: plan.table, column: column.name)
    }

    func failure(_ error: any Error, _ column: Int32) -> StoreError {
        let name = plan.columns[Int(column)].name
        if let known = error as? StoreError { return known.with(table: plan.table, column: name) }
        return StoreError(
            .mismatch, "the value could not be encoded", table: plan.table, column: name,
            cause: error)
    }
}

extension RowEncoder {
    /// The key as the column holds it. A date counts from 2001 before.
    @inline(__always)
    private func stored(key: Value, at position: Int) throws(StoreError) -> Value {
        // Field by field: a copy of the column costs more than the check.
        if let encoding = plan.columns[position].encoding { return try encoding.stored(key) }
        guard plan.columns[position].kind == .date,
            !since2001.contains(Int32(position))
        else { return key }
        return key.countedFrom1970
    }

    /// Binds an integer to a column without an encoding.
    @inline(__always)
    func bind(
        _ integer: Int64, toParameter parameter: Int32, of statement: Statement
    ) throws(StoreError) {
        guard state.pointee.statement == nil else { throw nested() }
        let code = sqlite3_bind_int64(try statement.pointer(), parameter, integer)
        guard code == SQLITE_OK else {
            throw failure(StoreError.of(nil, code: code, sql: nil), parameter - 1)
        }
    }

    /// Binds the value of a single-column key to the column's parameter.
    func bind(key: Value, at position: Int, to statement: Statement) throws(StoreError) {
        guard state.pointee.statement == nil else { throw nested() }
        let key = try stored(key: key, at: position)
        try requireStorage(of: key, at: position)
        state.pointee.begin(try statement.pointer())
        defer { state.pointee.statement = nil }
        do {
            try state.pointee.bind(key, entry(at: position))
        } catch {
            throw failure(error, Int32(position))
        }
    }

    /// The value of a single-column key as the column stores it, for a statement that gets it in
    /// another way. Throws as `bind(key:at:to:)`.
    func checked(key: Value, at position: Int) throws(StoreError) -> Value {
        guard state.pointee.statement == nil else { throw nested() }
        let key = try stored(key: key, at: position)
        try requireStorage(of: key, at: position)
        do {
            try state.pointee.requireKept(key, entry(at: position))
        } catch {
            throw failure(error, Int32(position))
        }
        return key
    }

    private func requireStorage(of key: Value, at position: Int) throws(StoreError) {
        guard key.storage != nil, key.storage != plan.columns[position].storage else { return }
        let column = plan.columns[position]
        throw StoreError(
            .mismatch, "the key is \(column.storage.sqlType), and \(key.storageClass) was given",
            table: plan.table, column: column.name)
    }
}
