/// One call of a client on a register, as seen from outside: when it was made, when it returned,
/// and what it returned.
public struct RegisterCall: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Returned this value.
        case read(Int)
        /// Set this value.
        case write(Int)
        /// Added to the value, and returned the sum.
        case add(Int, sum: Int)
        /// Set the new value if the old one was there, and returned whether it was.
        case exchange(old: Int, new: Int, isDone: Bool)
        /// Set the value to 0, and returned the one that was there.
        case take(Int)
    }

    public let client: Int
    public let key: Int
    public let action: Action
    /// Nanoseconds of a clock that all processes share.
    public let start: UInt64
    public let end: UInt64

    public init(client: Int, key: Int, action: Action, start: UInt64, end: UInt64) {
        self.client = client
        self.key = key
        self.action = action
        self.start = start
        self.end = end
    }

    // MARK: As a line of text

    public var line: String {
        let (name, numbers): (String, [Int]) =
            switch action {
            case .read(let value): ("read", [value])
            case .write(let value): ("write", [value])
            case .add(let number, let sum): ("add", [number, sum])
            case .exchange(let old, let new, let isDone): ("exchange", [old, new, isDone ? 1 : 0])
            case .take(let value): ("take", [value])
            }
        let words = ["\(client)", "\(key)", "\(start)", "\(end)", name] + numbers.map { "\($0)" }
        return words.joined(separator: " ")
    }

    public init?(line: String) {
        let words = line.split(separator: " ")
        let numbers = words.dropFirst(5).compactMap { Int($0) }
        guard words.count > 5, numbers.count == words.count - 5, let client = Int(words[0]),
            let key = Int(words[1]), let start = UInt64(words[2]), let end = UInt64(words[3])
        else { return nil }
        let action: Action
        switch (words[4], numbers.count) {
        case ("read", 1): action = .read(numbers[0])
        case ("write", 1): action = .write(numbers[0])
        case ("add", 2): action = .add(numbers[0], sum: numbers[1])
        case ("exchange", 3):
            action = .exchange(old: numbers[0], new: numbers[1], isDone: numbers[2] == 1)
        case ("take", 1): action = .take(numbers[0])
        default: return nil
        }
        self.init(client: client, key: key, action: action, start: start, end: end)
    }
}
