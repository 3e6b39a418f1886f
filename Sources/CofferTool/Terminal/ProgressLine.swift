import Foundation

/// One line of progress for people, never wider than the terminal: a wider one would leave a copy
/// of itself at every update.
struct ProgressLine {
    let verb: String
    let unit: String
    let done: Int
    let total: Int?
    /// The time since `doneBefore` was done.
    let elapsed: Duration
    var doneBefore = 0

    /// The line that fits, with as much of it as there is room for: first the bar goes, then the
    /// speed, then the time left, then the amount.
    ///
    /// - Parameter width: Columns of the terminal. The last one stays free, because a cursor there
    ///   may begin a new line.
    func text(width: Int) -> String {
        let room = max(0, width - 1)
        guard let total, total > 0 else {
            return String("\(verb): \(amount(done))".prefix(room))
        }
        let isEnding = done >= total
        let percent = "\(verb): \(isEnding ? 100 : Int(fraction(total) * 100)) %"
        guard !isEnding else {
            // What follows the last page, such as a checkpoint, has no progress of its own.
            return String("\(percent), finishing".prefix(room))
        }
        let amounts = ", \(amount(done, like: total)) of \(amount(total))"
        let speed = perSecond.flatMap { $0 < 1 ? nil : ", \(amount(Int($0)))/s" } ?? ""
        let rest = secondsLeft.map { ", \(Self.time($0)) left" } ?? ""
        let parts = [
            percent + amounts + speed + rest, percent + amounts + rest, percent + amounts, percent,
        ]
        let line = parts.first { $0.count <= room } ?? String(percent.prefix(room))
        let barWidth = min(30, room - line.count - 3)
        guard barWidth >= 10 else { return line }
        let filled = Int(fraction(total) * Double(barWidth))
        let bar =
            String(repeating: "#", count: filled)
            + String(repeating: "-", count: barWidth - filled)
        return "\(verb): [\(bar)]" + line.dropFirst(verb.count + 1)
    }

    private func fraction(_ total: Int) -> Double { Double(max(0, done)) / Double(total) }

    /// The speed so far; `nil` in the first two seconds, which tell little, and while nothing was
    /// done in the time.
    var perSecond: Double? {
        let seconds = elapsed / .seconds(1)
        return seconds >= 2 && done > doneBefore ? Double(done - doneBefore) / seconds : nil
    }

    /// The time left at the speed so far; `nil` without a total, and for the first fiftieth.
    var secondsLeft: Int? {
        guard let total, done < total, let perSecond, fraction(total) > 0.02 else { return nil }
        return Int((Double(total - done) / perSecond).rounded(.up))
    }

    private static func time(_ seconds: Int) -> String {
        switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3600: "\(seconds / 60) min \(seconds % 60) s"
        default: "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        }
    }

    /// A count with its unit.
    private func amount(_ count: Int) -> String {
        unit == "bytes" ? Self.bytes(count) : "\(count) \(unit)"
    }

    /// A count of bytes in the decimal unit that suits it.
    static func bytes(_ count: Int) -> String {
        let (name, size) = byteUnit(count)
        return "\(number(count, size)) \(name)"
    }

    /// The count of what is done, in the unit of the total and without naming it.
    private func amount(_ count: Int, like total: Int) -> String {
        guard unit == "bytes" else { return "\(count)" }
        return Self.number(count, Self.byteUnit(total).size)
    }

    private static func byteUnit(_ count: Int) -> (name: String, size: Int) {
        switch count {
        case ..<1_000: ("bytes", 1)
        case ..<1_000_000: ("kB", 1_000)
        case ..<1_000_000_000: ("MB", 1_000_000)
        default: ("GB", 1_000_000_000)
        }
    }

    private static func number(_ count: Int, _ size: Int) -> String {
        guard size > 1 else { return "\(count)" }
        let tenths = (Double(count) / Double(size) * 10).rounded()
        return "\(Int(tenths) / 10).\(Int(tenths) % 10)"
    }
}
