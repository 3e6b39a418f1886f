/// One bucket's table on one connection, for one verb: SQL values under SQL values.
struct BucketTable {
    let connection: Connection
    let plan: BucketPlan
    /// `nil` while the file has no such table.
    private(set) var statements: BucketStatements?

    /// Finds the table, and once per connection and schema compares its types with the plan's.
    ///
    /// - Throws: As `BucketSchema.hasExpiry`.
    init(_ connection: Connection, _ plan: BucketPlan) throws(StoreError) {
        self.connection = connection
        self.plan = plan
        statements = try connection.attachment(ObjectIdentifier(plan)) as? BucketStatements
        if statements == nil { try find() }
    }

    @inline(never)
    private mutating func find() throws(StoreError) {
        let schema = BucketSchema(connection)
        guard let hasExpiry = try schema.hasExpiry(plan) else { return }
        let made = BucketStatements(
            table: "main.\(try plan.table.quotedIdentifier())", hasExpiry: hasExpiry,
            hasTriggers: try schema.hasTriggers(plan.name, ofPrograms: true))
        connection.attach(made, as: ObjectIdentifier(plan))
        statements = made
    }

    /// Whether entries of the table may expire.
    var hasExpiry: Bool { statements?.hasExpiry ?? false }

    /// Microseconds since 1970, by the clock of the configuration.
    func now() throws(StoreError) -> Int64 {
        try connection.configuration.currentDate().microseconds()
    }

    // MARK: One entry

    /// A copy of the value under a key. `nil` if there is no such key, no table, or the entry has
    /// expired.
    ///
    /// - Throws: Errors of the query, with the table.
    func value(_ key: Value) throws(StoreError) -> Value? {
        try onRow(of: key) { raw throws(StoreError) in try Statement.value(of: raw, at: 0) }
    }

    /// The bytes under a key, as `value` gives them, without a `Data` between.
    ///
    /// - Throws: `.mismatch` if the value is not a blob; errors of the query, with the table.
    func bytes(_ key: Value) throws(StoreError) -> [UInt8]? {
        try onRow(of: key) { raw throws(StoreError) in
            do throws(StoreError) {
                return try Statement.bytes(of: raw, at: 0)
            } catch {
                throw error.with(table: plan.table, column: "value")
            }
        }
    }

    func contains(_ key: Value) throws(StoreError) -> Bool {
        try onRow(of: key) { _ in true } ?? false
    }

    /// Calls `body` with a key's row; `nil` if there is no row or no table.
    ///
    /// - Throws: What `body` throws; errors of the query, with the table.
    private func onRow<R>(
        of key: Value, _ body: (OpaquePointer) throws(StoreError) -> R
    ) throws(StoreError) -> R? {
        guard let statements else { return nil }
        do throws(StoreError) {
            let statement = try statements.selection(connection)
            let raw = try statement.pointer()
            return try key.withBorrowed { (key) throws(StoreError) in
                defer { statement.forgetArguments() }
                try statement.bindArgument(borrowing: key, to: raw, at: 1)
                if statements.hasExpiry {
                    try statement.bindArgument(.integer(now()), to: raw, at: 2)
                }
                defer { statement.rewind() }
                return try statement.advance() ? try body(raw) : nil
            }
        } catch {
            throw named(error)
        }
    }

    /// When an entry ends: microseconds since 1970, or NULL for never. `nil` if there is none that
    /// lives at `now`.
    ///
    /// - Throws: Errors of the query.
    func expiration(_ key: Value, now: Int64) throws(StoreError) -> Value? {
        guard let statements else { return nil }
        guard statements.hasExpiry else { return try contains(key) ? .null : nil }
        let statement = try statements.statement(.expiration, connection)
        defer { statement.forgetArguments() }
        let raw = try statement.pointer()
        try statement.bindArgument(key, to: raw, at: 1)
        try statement.bindArgument(.integer(now), to: raw, at: 2)
        defer { statement.rewind() }
        guard try statement.advance() else { return nil }
        return try Statement.value(of: raw, at: 0)
    }

    // MARK: Changing one entry

    /// Stores a value under a key, and replaces an existing one. Makes what is missing of the
    /// table.
    ///
    /// Not by INSERT OR REPLACE, for which SQLCipher 3.4.1 would encrypt a statement journal each
    /// time, and which would remove entries that are equal in another unique column.
    ///
    /// - Parameters:
    ///   - time: When the entry ends, in microseconds since 1970; `nil` for never.
    ///   - lifetime: The bucket's, which is recorded with a new table.
    /// - Throws: `.constraint` if the key is NULL, or a trigger refuses the entry; errors of the
    ///   statements.
    mutating func put(
        _ key: Value, _ value: Value, until time: Int64?, lifetime: Duration?
    ) throws(StoreError) {
        let statements = try prepare(forExpiry: time != nil, lifetime)
        if statements.hasTriggers {
            // First the one that cannot conflict.
            if try update(key, value, time, statements) { return }
            guard try insert(key, value, time, statements) else { throw refusal(of: key) }
            return
        }
        if try insert(key, value, time, statements) { return }
        guard try update(key, value, time, statements) else { throw refusal(of: key) }
    }

    private func update(
        _ key: Value, _ value: Value, _ time: Int64?, _ statements: BucketStatements
    ) throws(StoreError) -> Bool {
        try store(key, value, time, by: try statements.replacement(connection))
    }

    /// Stores a value under a key that has none, or an expired one.
    ///
    /// - Returns: Whether it did.
    /// - Throws: As `put`.
    mutating func putIfAbsent(
        _ key: Value, _ value: Value, until time: Int64?, lifetime: Duration?
    ) throws(StoreError) -> Bool {
        let statements = try prepare(forExpiry: time != nil, lifetime)
        if statements.hasTriggers {
            if try contains(key) { return false }
            try put(key, value, until: time, lifetime: lifetime)
            return true
        }
        if try insert(key, value, time, statements) { return true }
        guard statements.hasExpiry else {
            guard try contains(key) else { throw refusal(of: key) }
            return false
        }
        // One look at the clock: between two the entry could end.
        let now = try now()
        if try run(
            try statements.statement(.revival, connection), key, value, Self.sql(time),
            .integer(now))
        {
            return true
        }
        guard try expiration(key, now: now) != nil else { throw refusal(of: key) }
        return false
    }

    private func insert(
        _ key: Value, _ value: Value, _ time: Int64?, _ statements: BucketStatements
    ) throws(StoreError) -> Bool {
        try store(key, value, time, by: try statements.insertion(connection))
    }

    /// Runs a statement that takes key and value, and the time of expiry if the table has one.
    ///
    /// - Returns: Whether it changed the row.
    /// - Throws: Errors of the statement.
    private func store(
        _ key: Value, _ value: Value, _ time: Int64?, by statement: Statement
    ) throws(StoreError) -> Bool {
        guard statements?.hasExpiry == true else { return try run(statement, key, value) }
        return try run(statement, key, value, Self.sql(time))
    }

    /// Gives an entry another value, and keeps its time of expiry, even if that has come.
    ///
    /// - Returns: Whether there is a row of the entry.
    /// - Throws: `.constraint` if a trigger refuses the value; errors of the statement.
    func replace(_ key: Value, with value: Value) throws(StoreError) -> Bool {
        guard let statements else { return false }
        if try run(try statements.statement(.keepingUpdate, connection), key, value) { return true }
        let isThere =
            statements.hasExpiry
            ? try expiration(key, now: .min) != nil : try contains(key)
        guard !isThere else { throw refusal(of: key) }
        return false
    }

    /// Gives an entry that lives now another time of expiry; makes the column if it is missing.
    ///
    /// - Returns: Whether there is such an entry.
    /// - Throws: Errors of the statements.
    mutating func touch(_ key: Value, until time: Int64?) throws(StoreError) -> Bool {
        guard let found = statements else { return false }
        guard found.hasExpiry || time != nil else { return try contains(key) }
        if !found.hasExpiry, try !contains(key) { return false }
        let statements = try prepare(forExpiry: true, nil)
        return try run(
            try statements.statement(.touch, connection), key, Self.sql(time), .integer(now()))
    }

    /// Removes an entry.
    ///
    /// - Returns: Whether there was one that had not expired.
    /// - Throws: `.constraint` if a trigger keeps it; errors of the statements.
    func remove(_ key: Value) throws(StoreError) -> Bool {
        guard let statements else { return false }
        let wasLive = statements.hasExpiry ? try contains(key) : true
        if try run(try statements.statement(.deletion, connection), key) { return wasLive }
        guard try !contains(key) else {
            throw StoreError(
                .constraint, "the entry was not removed: a trigger keeps it", table: plan.table)
        }
        return false
    }

    // MARK: Inside

    /// The statements of the table, after it and its column for expiry were made if they are
    /// missing.
    ///
    /// - Throws: Errors of making them.
    private mutating func prepare(
        forExpiry needsExpiry: Bool, _ lifetime: Duration?
    ) throws(StoreError) -> BucketStatements {
        if needsExpiry { connection.willExpire?(ExpirySweep.work) }
        if let statements, statements.hasExpiry || !needsExpiry { return statements }
        return try make(needsExpiry, lifetime)
    }

    @inline(never)
    private mutating func make(
        _ needsExpiry: Bool, _ lifetime: Duration?
    ) throws(StoreError) -> BucketStatements {
        let schema = BucketSchema(connection)
        if statements == nil { try schema.make(plan, lifetime: lifetime) }
        if needsExpiry { try schema.addExpiry(plan.name) }
        try find()
        guard let statements else {
            throw StoreError(.mismatch, "the table is not that of a bucket", table: plan.table)
        }
        return statements
    }

    private static func sql(_ time: Int64?) -> Value { time.map { .integer($0) } ?? .null }

    /// The error for an entry that was neither inserted nor changed. Only a user's own key type can
    /// make NULL, whose violation OR IGNORE has ignored too.
    private func refusal(of key: Value) -> StoreError {
        guard key != .null else {
            return StoreError(.constraint, "the key is NULL", table: plan.table, column: "key")
        }
        return StoreError(
            .constraint, "the entry was not stored: a trigger or constraint refuses it",
            table: plan.table)
    }

    /// Runs a statement for one row.
    ///
    /// - Returns: Whether it changed the row.
    /// - Throws: Errors of the statement.
    private func run(
        _ statement: Statement, _ key: Value, _ second: Value? = nil, _ third: Value? = nil,
        _ fourth: Value? = nil
    ) throws(StoreError) -> Bool {
        let raw = try statement.pointer()
        let hasSecond = second != nil
        try key.withBorrowed { (key) throws(StoreError) in
            try (second ?? .null).withBorrowed { (second) throws(StoreError) in
                defer { statement.forgetArguments() }
                try statement.bindArgument(borrowing: key, to: raw, at: 1)
                if hasSecond { try statement.bindArgument(borrowing: second, to: raw, at: 2) }
                if let third { try statement.bindArgument(third, to: raw, at: 3) }
                if let fourth { try statement.bindArgument(fourth, to: raw, at: 4) }
                do throws(StoreError) {
                    try statement.runToEnd()
                } catch {
                    throw named(error)
                }
            }
        }
        guard statement.changeCount > 0 else { return false }
        if let change = statement.reportedChange, let observer = statement.handle.touchObserver {
            observer.didChange(ReportedChange(kind: change, table: plan.table, key: [key]))
        }
        return true
    }

    /// The error with the table.
    private func named(_ error: StoreError) -> StoreError {
        error.table == nil ? error.with(table: plan.table) : error
    }
}
