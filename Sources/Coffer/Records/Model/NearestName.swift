extension String {
    /// The name that this one is probably a misspelling of; `nil` if none is similar.
    ///
    /// - Complexity: O(*names* × *length*²).
    package func nearest(among names: [String]) -> String? {
        let near = names.map { (name: $0, distance: distance(to: $0)) }
            .min { $0.distance < $1.distance }
        guard let near, near.distance * 3 <= Swift.max(count, near.name.count) else { return nil }
        return near.name
    }

    /// How many characters have to be added, removed, replaced or swapped with their neighbour to
    /// make the other name.
    private func distance(to other: String) -> Int {
        let (own, other) = (Array(lowercased()), Array(other.lowercased()))
        var rows = [Array(0...other.count)]
        for (index, character) in own.enumerated() {
            var row = [index + 1]
            for (column, otherCharacter) in other.enumerated() {
                var distance = Swift.min(
                    rows[index][column + 1] + 1, row[column] + 1,
                    rows[index][column] + (character == otherCharacter ? 0 : 1))
                if index > 0, column > 0, character == other[column - 1],
                    own[index - 1] == otherCharacter
                {
                    distance = Swift.min(distance, rows[index - 1][column - 1] + 1)
                }
                row.append(distance)
            }
            rows.append(row)
        }
        return rows[own.count][other.count]
    }
}
