import Coffer

struct Note: Record {
    var id: Int
    var title: String
    var pinned: Bool
    var rank: Double
    var note: String?
}

func five(_ limit: Int) -> Query<Note> {
    Note.where(
        \.pinned == true && \.title != "x" && \.id < limit && \.note == nil && \.rank >= 0.5
    ).order(by: \.rank, .descending).order(by: \.id).limit(20)
}

func mixed(_ limit: Int) -> Query<Note> {
    Note.where(
        !(\.pinned == true) && (["a", "b"].contains(\.title) || (1...5).contains(\.rank))
            && .hasPrefix(\.note, "x") && .sql("length(title) > \(limit)"))
}
