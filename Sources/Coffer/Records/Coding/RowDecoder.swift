import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes records from the current row of a statement, by the names of its columns.
///
/// One decoder serves all statements with the same columns on one connection.
final class RowDecoder: Decoder {
    let table: String
    let names: [String]
    /// The column of the key, if it is a single one.
    let key: String?
    let state: UnsafeMutablePointer<RowState>
    /// Makes records without their `init(from:)`; `nil` if that is used.
    let stored: StoredProperties?
    /// The number of rows that the last fetch of all rows returned, at most `maximumExpectedCount`.
    var lastCount = 0
    /// Memory for one record of the decoded type, allocated when first needed.
    private var place: UnsafeMutableRawPointer?
    /// Columns of the table that were not selected.
    var otherNames: Set<String> = []
    /// The columns that the type has asked for, while somebody wants to know.
    var askedNames: Set<String>?
    /// Whether the type has asked for one of `otherNames`.
    private(set) var hasMissed = false
    /// The columns of the rows whose dates count from 2001.
    let since2001: ColumnSet
    /// Whether the rows hold sizes instead of the values of `Lazy` properties.
    private let leavesLazy: Bool
    private let positions: [String: Int32]
    private let encodings: [ColumnEncoding?]
    private var holders: [ObjectIdentifier: AnyObject] = [:]
    private var codings: [ObjectIdentifier: ColumnCoding] = [:]

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// - Parameters:
    ///   - names: The columns of the rows, in order. They may differ from the plan's.
    ///   - columns: Their forms. Without them a column has the form of the plan's of its name, and
    ///     `stored` is read by the names of the plan's columns instead of in the order of the rows.
    ///   - key: The column of the key, if it is a single one.
    ///   - stored: The stored properties of the decoded type; `nil` decodes by its `init(from:)`.
    ///   - since2001: The columns of the rows whose dates count from 2001.
    init(
        _ plan: RecordPlan, names: [String], of columns: [RecordColumn]? = nil,
        key: String? = nil, leavesLazy: Bool = false, stored: StoredProperties? = nil,
        since2001: ColumnSet
    ) {
        table = plan.table
        self.names = names
        self.since2001 = since2001
        self.key = key
        self.leavesLazy = leavesLazy
        encodings =
            columns?.map(\.encoding)
            ?? names.map { name in plan.columns.first { $0.name == name }?.encoding }
        let positions = Dictionary(
            names.enumerated().map { ($0.element, Int32($0.offset)) },
            uniquingKeysWith: { first, _ in first })
        self.positions = positions
        self.stored =
            columns == nil ? stored?.moved { positions[$0] ?? KeyMap.absent } : stored
        state = .allocate(capacity: 1)
        state.initialize(to: RowState())
        state.pointee.hasEncodings = encodings.contains { $0 != nil }
        state.pointee.since2001 = since2001.first
        // Unretained, because this object's `deinit` frees the state.
        state.pointee.owner = Unmanaged.passUnretained(self)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        place?.deallocate()
    }

    /// Uninitialised memory for one record. A decoder serves only one type.
    @inline(__always)
    func place<R>(for type: R.Type) -> UnsafeMutablePointer<R> {
        let place = place ?? makePlace(MemoryLayout<R>.size, MemoryLayout<R>.alignment)
        return place.bindMemory(to: type, capacity: 1)
    }

    @inline(never)
    private func makePlace(_ byteCount: Int, _ alignment: Int) -> UnsafeMutableRawPointer {
        let made = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: alignment)
        place = made
        return made
    }

    /// Whether it decodes rows now.
    var isBusy: Bool { state.pointee.statement != nil }

    /// Decodes from the rows of this statement, until `end()`.
    func begin(_ statement: Statement) throws(StoreError) {
        guard state.pointee.statement == nil else {
            throw StoreError(
                .misuse, "a record reads records of its own type while it is decoded",
                table: table)
        }
        state.pointee.statement = try statement.pointer()
    }

    func end() {
        state.pointee.statement = nil
    }

    /// Turns an error of the user's `init(from:)` into a `StoreError`.
    @inline(never)
    func wrapped(_ error: any Error) -> StoreError {
        if let known = error as? StoreError { return known }
        let coding = error as? DecodingError
        // Any other path may come from a coder that the type uses itself.
        let column = coding?.context?.codingPath.first as? OpenedJSON.ColumnKey
        let words =
            column == nil ? nil : coding?.expectedType.map { ": expected \($0) in its JSON" }
        return StoreError(
            .mismatch, "a row could not be decoded" + (words ?? "") + rowKey, table: table,
            column: column?.stringValue, cause: error)
    }

    // MARK: Decoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        if state.pointee.keyType == ObjectIdentifier(type), let holder = state.pointee.holder {
            // The holder was made for this key type: see `makeContainer`.
            return Unmanaged<ContainerHolder<KeyedDecodingContainer<Key>>>.fromOpaque(holder)
                ._withUnsafeGuaranteedRef { $0.copy() }
        }
        return makeContainer(type)
    }

    @inline(never)
    private func makeContainer<Key: CodingKey>(
        _ type: Key.Type
    ) -> KeyedDecodingContainer<Key> {
        typealias Holder = ContainerHolder<KeyedDecodingContainer<Key>>
        if let holder = holders[ObjectIdentifier(type)] as? Holder { return holder.copy() }
        let map = KeyMap.make(for: type, state: UnsafeMutableRawPointer(state))
        let holder = Holder(KeyedDecodingContainer(RowKeyedDecoding<Key>(keys: map)), map)
        holders[ObjectIdentifier(type)] = holder
        if state.pointee.keyType == nil {
            state.pointee.keyType = ObjectIdentifier(type)
            // Unretained: `holders` keeps it as long as the state lives.
            state.pointee.holder = UnsafeRawPointer(Unmanaged.passUnretained(holder).toOpaque())
        }
        return holder.copy()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw refuse("an unkeyed container")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw refuse("a single-value container")
    }

    func refuse(_ container: String) -> StoreError {
        StoreError.noColumns(for: container).with(table: table)
    }

    // MARK: Columns

    func column(_ name: String) -> Int32 {
        askedNames?.insert(name)
        if let position = positions[name] { return position }
        if otherNames.contains(name) { hasMissed = true }
        return KeyMap.absent
    }

    /// The columns of the rows, for a type that asks for all.
    func allNames() -> [String] {
        askedNames?.formUnion(names)
        if !otherNames.isEmpty { hasMissed = true }
        return names
    }

    func missing(_ name: String) -> StoreError {
        StoreError(
            .mismatch, "the result has no column for a property that is not optional",
            hint: "Select the column, or make the property optional.", table: table, column: name)
    }

    /// - Parameter type: The type to decode, for errors that may not name it.
    func failure(
        _ error: any Error, _ column: Int32, _ type: Any.Type? = nil
    ) -> StoreError {
        let words = type.map { " as \($0)" } ?? ""
        let known =
            StoreError(beneath: error)
            ?? StoreError(
                .mismatch, "the stored value could not be decoded\(words)", cause: error)
        return StoreError(
            known.code, known.message + rowKey, hint: known.hint, table: table,
            column: names[Int(column)], cause: known.cause)
    }

    /// Names the row by its key, if that is an integer. Any other key could reveal the row's
    /// content.
    private var rowKey: String {
        guard let key, let column = positions[key],
            case .integer(let integer)? = try? state.pointee.value(column)
        else { return "" }
        return ", in the row with \(key) \(integer)"
    }

    /// Decodes a value of a type that has no faster path.
    @inline(never)
    func decode<T: Decodable>(other type: T.Type, _ column: Int32) throws -> T {
        // Equal types have the same bits; a cast would convert other arrays too.
        if type == [UInt8].self {
            return unsafeBitCast(
                try state.pointee.bytes(state.pointee.raw(column), column), to: type)
        }
        do {
            if let encoding = encodings[Int(column)], encoding.type == type {
                let usual = try encoding.usual(try state.pointee.value(column))
                return try ScalarDecoder(usual, countingFrom2001: true).decode(type)
            }
            let isFrom2001 = since2001.contains(column)
            switch coding(of: type) {
            case .lazy:
                return try decode(lazy: type, column)
            case .json:
                return try JSONText.decode(type, from: try state.pointee.textData(column, type))
            case .single:
                let value = try state.pointee.value(column)
                return try T(from: ScalarDecoder(value, countingFrom2001: isFrom2001))
            case .raw:
                let value = try state.pointee.value(column)
                return try T(
                    from: RawValueDecoder(
                        scalar: ScalarDecoder(value, countingFrom2001: isFrom2001)))
            default:
                let value = try state.pointee.value(column)
                return try ScalarDecoder(value, countingFrom2001: isFrom2001).decode(type)
            }
        } catch {
            throw failure(error, column, type)
        }
    }

    /// Opens the JSON of a column that its type decodes piece by piece.
    ///
    /// - Parameter type: The type that errors name.
    func opened<T>(
        _ column: Int32, as type: Any.Type, _ body: (any Decoder) throws -> T
    ) throws -> T {
        do {
            let json = try state.pointee.textData(column, type)
            return try body(try OpenedJSON.decoder(of: json, at: names[Int(column)]))
        } catch {
            throw failure(error, column, type)
        }
    }

    /// A `Lazy` from its size, or from its value in a row that holds that.
    private func decode<T: Decodable>(lazy type: T.Type, _ column: Int32) throws -> T {
        let value = try state.pointee.value(column)
        if leavesLazy, case .integer(let byteCount) = value,
            let made = (type as? any LazyProperty.Type)?.inFile(byteCount: byteCount) as? T
        {
            return made
        }
        return try T(from: ScalarDecoder(value, countingFrom2001: false))
    }

    private func coding<T: Decodable>(of type: T.Type) -> ColumnCoding {
        if let known = codings[ObjectIdentifier(type)] { return known }
        // A type that throws before it asks for a container is offered the value as it is.
        let coding: ColumnCoding =
            type is any LazyProperty.Type ? .lazy : ColumnShape.of(type)?.coding ?? .single
        codings[ObjectIdentifier(type)] = coding
        return coding
    }
}
