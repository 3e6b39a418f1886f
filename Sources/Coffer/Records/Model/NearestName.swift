extension String {
    /// The name that this one is probably a misspelling of; `nil` if none is similar.
    ///
    /// - Complexity: O(*names* × *length*²).
    func nearest(among names: [String]) -> String? {
        let near = names.map { (name: $0, distance: distance(to: $0)) }
            .min { $0.distance < $1.distance }
        guard let near, near.distance * 3 <= Swift.max(count, near.name.count) else { return nil }
        return near.name
    }

    /// How many characters have to be added, removed or replaced to make the other name.
    private func distance(to other: String) -> Int {
        let (own, other) = (Array(lowercased()), Array(other.lowercased()))
        var row = Array(0...other.count)
        for (index, character) in own.enumerated() {
            let above = row
            row[0] = index + 1
            for (column, otherCharacter) in other.enumerated() {
                row[column + 1] = Swift.min(
                    above[column + 1] + 1, row[column] + 1,
                    above[column] + (character == otherCharacter ? 0 : 1))
            }
        }
        return row[other.count]
    }
}
