/// Finds a column by coding key; compares strings only the first time.
///
/// Synthesised `CodingKeys` are enums of one byte, so a key's byte is an index into a table. Other
/// keys are looked up by their `stringValue` each time.
///
/// The map has its own allocation, so that the containers around it are one trivial word. The
/// standard library's boxes then copy them without counting references. Its owner, a
/// `ContainerHolder`, lives as long as the decoder or encoder that made it. `Codable` ends every
/// use of a container with the `init(from:)` or `encode(to:)` call that asked for it.
struct KeyMap {
    /// The state of the coder that the container belongs to.
    let state: UnsafeMutableRawPointer
    /// Whether a key's byte identifies it.
    private let isByte: Bool
    /// 256 entries, one per byte; `unknown` until that key is looked up.
    private let entries: UnsafeMutablePointer<Int32>

    private static let unknown: Int32 = -1
    /// The entry of a key without a column.
    static let absent: Int32 = -2
    /// The entry of a key whose column must not be written.
    static let unchosen: Int32 = -3

    static func make<Key: CodingKey>(
        for type: Key.Type, state: UnsafeMutableRawPointer
    ) -> UnsafeMutablePointer<KeyMap> {
        let entries = UnsafeMutablePointer<Int32>.allocate(capacity: 256)
        entries.initialize(repeating: unknown, count: 256)
        let map = UnsafeMutablePointer<KeyMap>.allocate(capacity: 1)
        // All bits of a trivial type of one byte are its value.
        let isByte = MemoryLayout<Key>.size == 1 && _isPOD(Key.self)
        map.initialize(to: KeyMap(state: state, isByte: isByte, entries: entries))
        return map
    }

    static func free(_ map: UnsafeMutablePointer<KeyMap>) {
        map.pointee.entries.deallocate()
        map.deallocate()
    }

    /// The entry of a key, as `find` returns it for the key's name: at least 0, `absent` or
    /// `unchosen`.
    @inline(__always)
    func entry<Key: CodingKey>(_ key: Key, _ find: (String) -> Int32) -> Int32 {
        guard isByte else { return find(key.stringValue) }
        // `isByte`: the key is one byte, all bits of which are its value.
        let byte = unsafeBitCast(key, to: UInt8.self)
        let entry = entries[Int(byte)]
        if entry != Self.unknown { return entry }
        return remember(find(key.stringValue), byte)
    }

    @inline(never)
    private func remember(_ entry: Int32, _ byte: UInt8) -> Int32 {
        entries[Int(byte)] = entry
        return entry
    }
}

/// Keeps a container for one key type, and its key map.
final class ContainerHolder<Container> {
    private let container: Container
    private let map: UnsafeMutablePointer<KeyMap>

    init(_ container: Container, _ map: UnsafeMutablePointer<KeyMap>) {
        self.container = container
        self.map = map
    }

    deinit {
        KeyMap.free(map)
    }

    /// The container. Must not be inlined: here the container's metadata is at hand, but a caller
    /// that knows only its key type would look it up in a table for every row.
    @inline(never)
    func copy() -> Container { container }
}
