/// A value that a task has read beside others, with its number among them.
///
/// An object, so that the tasks of a group have values of one word.
final class ReadAhead<Value: Sendable>: Sendable {
    let number: UInt64
    let value: Value

    init(_ number: UInt64, _ value: Value) {
        (self.number, self.value) = (number, value)
    }
}
