/// What became of a store that was to be rotated.
enum RotationState: String, Codable, CaseIterable {
    /// A run for the store begins. Only a report file has it.
    case started
    /// This run has given the store another key.
    case rotated
    /// An earlier run, which did not come to its end, or another program has done it.
    case foundRotated
    /// The key is not due.
    case current
    /// The key is due. Only `--dry-run` has it.
    case wouldRotate
    case failed
    case interrupted
    /// The run ended before it came to this store.
    case notStarted

    /// For people.
    var text: String {
        switch self {
        case .started: "begun"
        case .rotated: "rotated"
        case .foundRotated: "found rotated"
        case .current: "not due"
        case .wouldRotate: "would rotate"
        case .failed: "failed"
        case .interrupted: "interrupted"
        case .notStarted: "not begun"
        }
    }

    /// Whether nothing is left to do for the store.
    var isDone: Bool { [.rotated, .foundRotated, .current, .wouldRotate].contains(self) }
}
