import Coffer
import CofferObservation  // .product(name: "CofferObservation", package: "coffer")
import Crypto
import Foundation
import Testing

/// The code of the articles, as they show it, compiled and run. `ArticleTests` compares both.
@Suite(.againstHanging, .onOwnThreads) struct ArticleCode {
    private let folder: TemporaryFolder
    private let store: Store

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(path: folder.path(), key: .numbered(1), configuration: .testing())
    }

    // MARK: Coffer

    /// Compiled only: a test leaves no file in the folder that it runs in.
    private func frontPage(text: String) async throws {
        struct Note: Record {
            var id = UUID()
            var title: String
        }
        let store = try await Store(path: "notes.db", key: .passphrase(text))
        try await store.write { tx in try tx.insert(Note(title: "Buy milk")) }
    }

    @Test func `Coffer: a store in memory`() async throws {
        let scratch = try await Store(.memory)  // no `await` in a function that is not async
        #expect(try await scratch.read { tx in try tx.rows("SELECT 1").count } == 1)
    }

    // MARK: Coming from FMDB

    @Test func `Coming from FMDB: what has another shape`() throws {
        let path = folder.path("other.db")
        let connection = try Connection(path: path, key: .numbered(1))
        defer { connection.close() }
        try connection.execute("CREATE TABLE person(name TEXT, age INTEGER)")
        try connection.execute("INSERT INTO person VALUES ('Bob', 31), ('Eve', 29)")

        connection.busyPolicy = .timeout(.seconds(2))
        try connection.register(function: "initials", argumentCount: 1) { arguments in
            .text(String(try arguments.get(0, as: String.self).prefix(1)))
        }
        let old = try connection.rows(
            SQL(text: "SELECT name, age FROM person WHERE age > :age", named: ["age": 30]))
        let ages = old.map { $0.coerced["age"].int }
        let insert = try connection.prepare("INSERT INTO person(name) VALUES (?)")
        try insert.bind([.text("Ada")])
        try insert.run()

        #expect(ages == [31])
        let initials: String? = try connection.scalar("SELECT initials(max(name)) FROM person")
        #expect(initials == "E")
    }

    // MARK: Following changes

    private struct SearchIndex {
        struct Enough: Error {}

        func update(_ key: UUID, isGone: Bool) throws {
            #expect(!isGone)
            throw Enough()
        }

        /// A loop that begins during a write is told to read again.
        func build() throws {}
    }

    @Test func `Following changes: values, rows and a history`() async throws {
        struct Note: Record {
            var id = UUID()
            var pinned = true
        }
        struct Enough: Error {}
        let (store, index) = (store, SearchIndex())
        func show(_ count: Int) throws {
            #expect(count == 0)
            throw Enough()
        }
        do {
            for try await pinned in store.observe({ tx in try tx.count(Note.where(\.pinned)) }) {
                try show(pinned)
            }
        } catch is Enough {}

        try await store.write { tx in try tx.create(Note.self) }
        let token = try await store.write { tx in
            try tx.keepHistory(of: Note.table)
            return try tx.changeToken()
        }

        // Writes until the loop, which gets later commits only, has got one.
        let writer = Task {
            while !Task.isCancelled {
                try await store.write { tx in _ = try tx.insert(Note()) }
            }
        }
        do {
            let events = store.changes(in: Note.self).makeAsyncIterator()
            try index.build()
            while let event = try await events.next() {
                switch event {
                case .commit(let rows):
                    for row in rows {
                        try index.update(row.key(as: UUID.self), isGone: row.kind == .delete)
                    }
                case .rescan: try index.build()
                }
            }
        } catch is SearchIndex.Enough {}
        writer.cancel()
        _ = await writer.result

        func send(_ change: ChangedRow) throws { #expect(change.kind == .insert) }
        let batch = try await store.changes(since: token)
        for change in batch.changes { try send(change) }
        let next = batch.next
        #expect(!batch.changes.isEmpty && next != token)
    }

    private struct Line: Record, Equatable {
        var id = UUID()
        var title = ""
        var pinned = true
    }

    /// A list on a screen, which notes what it is asked to do.
    private struct ListOnScreen {
        var calls: [String] = []

        mutating func delete(_ rows: [Int]) { calls.append("delete \(rows)") }
        mutating func insert(_ rows: [Int]) { calls.append("insert \(rows)") }
        mutating func move(_ from: Int, to: Int) { calls.append("move \(from) \(to)") }
        mutating func reload(_ rows: [Int]) { calls.append("reload \(rows)") }
    }

    @MainActor private final class Screen {
        typealias Note = Line
        var token: ObservationToken?
        var shown: [Note]?

        func show(_ notes: [Note]) { shown = notes }
        func show(_ error: any Error) { Issue.record(error) }

        func open(_ store: Store) {
            token = store.observe { tx in
                try tx.fetch(Note.where(\.pinned))
            } onError: { [weak self] error in
                self?.show(error)
            } onChange: { [weak self] notes in
                self?.show(notes)
            }
        }
    }

    @Test @MainActor func `Following changes: on an actor`() async throws {
        typealias Note = Line
        let store = store
        try await store.write { tx in try tx.insert(Note()) }
        let screen = Screen()
        screen.open(store)
        try await yieldWhile { screen.shown == nil }
        #expect(screen.shown?.count == 1)

        var (table, counts) = (ListOnScreen(), [Int]())
        func show(_ count: Int) { counts.append(count) }
        func show(_ error: any Error) { Issue.record(error) }
        var token: ObservationToken?
        token = store.observe { tx in try tx.count(Note.all) }
            .throttle(for: .milliseconds(100))
            .start { error in
                show(error)
            } onChange: { count in
                show(count)
            }
        try await yieldWhile { counts.isEmpty }
        token = store.observe { tx in try tx.fetch(Note.order(by: \.title)) }
            .differences(by: \.id)
            .start { error in
                show(error)
            } onChange: { difference in
                table.delete(difference.removed.map(\.index))
                table.insert(difference.inserted.map(\.index))
                for move in difference.moved { table.move(move.from, to: move.to) }
                table.reload(difference.updated.map(\.index))
            }
        try await yieldWhile { table.calls.isEmpty }
        #expect(counts == [1] && table.calls == ["delete []", "insert [0]", "reload []"])
        token?.cancel()
    }

    @Test @MainActor func `Following changes: a screen`() async throws {
        typealias Note = Line
        let store = store
        try await store.write { tx in try tx.insert(Note()) }
        let notes = FetchedRows(store, Note.where(\.pinned).order(by: \.title))
        let count = FetchedValue(store) { tx in try tx.count(Note.all) }
        notes.start()
        count.start()
        try await yieldWhile { notes.isLoading || count.isLoading }
        #expect(notes.rows.count == 1 && count.value == 1)
    }

    // MARK: Buckets

    private struct Session: Codable, Sendable, Equatable { var user: String }
    private struct Job: Codable, Sendable { var name: String }
    private enum Theme: String, Codable, Sendable { case light, dark }

    @Test func `Buckets: sessions, counters, locks and queues`() async throws {
        let token = "t1"
        let sessions = Bucket<String, Session>("sessions", lifetime: .seconds(1800))
        try await store.set(Session(user: "ada"), for: token, in: sessions)
        let session = try await store.get(token, in: sessions)
        #expect(session == Session(user: "ada"))

        let (me, job) = (UUID(), Job(name: "import"))
        let visits = Bucket<String, Int>("visits")
        let count = try await store.increment("ada", in: visits)

        let locks = Bucket<String, UUID>("locks")
        let (isMine, holder) = try await store.compareExchange(
            "import", expected: nil, desired: me, in: locks, expiring: .after(.seconds(30)))

        let jobs = Bucket<CompositeKey<Date, UUID>, Job>("jobs")
        try await store.set(job, for: CompositeKey(.now, UUID()), in: jobs)
        let next = try await store.popFirst(in: jobs)
        #expect(count == 1 && isMine && holder == nil && next?.value.name == "import")
    }

    @Test func `Buckets: keys of one's own, and expiry`() throws {
        enum Channel: String, BucketKey { case mail, push }
        struct UserID: RawRepresentable, BucketKey { let rawValue: UUID }
        let user = UserID(rawValue: UUID())
        let (token, code) = ("t1", 1234)
        let sessions = Bucket<String, Session>("sessions", lifetime: .seconds(1800))
        let codes = Bucket<UserID, Int>("codes")
        try store.write { tx in
            let events = Bucket<CompositeKey<UserID, Date>, String>("events")
            try tx.set("login", for: CompositeKey(user, .now), in: events)
            let latest = try tx.entries(
                in: events, .starting(with: user), order: .descending, maximumCount: 10)
            #expect(latest.map(\.value) == ["login"])
            try tx.set(1, for: .push, in: Bucket<Channel, Int>("channels"))
            try tx.set(Session(user: "ada"), for: token, in: sessions)

            try tx.set(code, for: user, in: codes, expiring: .after(.seconds(300)))
            try tx.touch(token, in: sessions)  // sliding: 1 800 s from now
            let rest = try tx.remainingLifetime(of: token, in: sessions)
            #expect(rest != nil && rest != .unlimited)
        }
    }

    @Test func `Buckets: attachments`() async throws {
        struct Connection { func send(_ chunk: Data) async throws { #expect(chunk.count == 100) } }
        struct Request { let body = AttachmentFixture.source([Data(count: 100)]) }
        let (connection, request, id) = (Connection(), Request(), UUID())
        let photos = AttachmentBucket<UUID>("photos")
        let stored = try await store.set(contentsOf: request.body, for: id, in: photos)
        for try await chunk in store.chunks(of: id, in: photos) {
            try await connection.send(chunk)
        }
        let header = try await store.read { tx in
            try tx.withAttachment(id, in: photos) { photo in try photo.bytes(in: 0..<64) }
        }
        #expect(header == Data(count: 64) && stored.byteCount == 100)
    }

    struct Movie: Record {
        var id: UUID
        var title: String
        static let videos = AttachmentBucket("videos", of: \Movie.id)
    }

    @Test func `Records: attachments of any size`() async throws {
        struct Connection { func send(_ chunk: Data) async throws { #expect(chunk.count == 100) } }
        let connection = Connection()
        let upload = AttachmentFixture.source([Data(count: 100)])
        let movie = Movie(id: UUID(), title: "a")
        try await store.write { tx in try tx.insert(movie) }
        try await store.set(contentsOf: upload, for: movie.id, in: Movie.videos)
        for try await chunk in store.chunks(of: movie.id, in: Movie.videos) {
            try await connection.send(chunk)
        }
        try await store.write { tx in _ = try tx.delete(movie) }  // with its video
        #expect(try await store.attachment(movie.id, in: Movie.videos) == nil)
    }

    @Test func `Buckets: a cache of decoded values`() throws {
        var configuration = Configuration()
        configuration.bucketCache = BucketCache(maximumCount: 10_000)
        #expect(configuration.bucketCache?.maximumCount == 10_000)
    }

    @Test func `Buckets: following`() async throws {
        struct Enough: Error {}
        let (token, sessions) = ("t1", Bucket<String, Session>("sessions"))
        try await store.set(Session(user: "ada"), for: token, in: sessions)
        func show(_ session: Session?) throws {
            #expect(session?.user == "ada")
            throw Enough()
        }
        do {
            for try await session in store.observe({ tx in try tx.get(token, in: sessions) }) {
                try show(session)
            }
        } catch is Enough {}
        func forget(_ key: String) throws {
            #expect(key == "t2")
            throw Enough()
        }
        func forgetAll() throws {}
        // Writes until the loop, which gets later commits only, has got one.
        let writer = Task {
            while !Task.isCancelled {
                try await store.set(Session(user: "bob"), for: "t2", in: sessions)
            }
        }
        defer { writer.cancel() }
        do {
            for try await event in store.changes(in: sessions) {
                switch event {
                case .commit(let rows): for row in rows { try forget(try row.key(in: sessions)) }
                case .rescan: try forgetAll()
                }
            }
        } catch is Enough {}
    }

    @Test func `Buckets: a setting`() async throws {
        struct Enough: Error {}
        func apply(_ theme: Theme) throws {
            #expect(theme == .dark)
            throw Enough()
        }
        do {
            let theme = Setting("theme", default: Theme.light)
            try await store.set(.dark, for: theme)
            let current = try await store.get(theme)
            for try await newTheme in store.observe(theme) { try apply(newTheme) }
            Issue.record("no value came, though \(current) is set")
        } catch is Enough {}
    }

    // MARK: Many stores

    private struct KeyService {
        func key(for path: String) async throws -> StoreKey { .numbered(1) }
    }

    /// Compiled only: a test leaves no folder of users where it runs.
    private func serveUsers(_ kms: KeyService, _ migrations: [Migration]) async throws {
        struct Note: Record { var id: Int }
        var configuration = StorePool.Configuration(maximumOpenStoreCount: 500)
        configuration.setUp = { store in try store.migrate(migrations) }
        let pool = try StorePool(configuration: configuration) { path in
            try await kms.key(for: path)
        }

        func notes(of user: String) async throws -> [Note] {
            try await pool.withStore(at: "users/\(user).db") { store in
                try await store.read { tx in try tx.fetch(Note.all) }
            }
        }
        _ = try await notes(of: "anna")
    }

    // MARK: Queries

    struct Author: Record {
        var id: Int64?
        var name: String
    }

    @Test func `Queries: conditions, order and pages`() throws {
        struct Note: Record {
            var id: Int
            var title = "x"
            var pinned: Bool
            var created: Date
        }
        try store.write { tx in
            for id in 0..<50 {
                let created = Date(timeIntervalSince1970: Double(id % 3))
                try tx.insert(Note(id: id, pinned: id % 2 == 0, created: created))
            }
            try tx.update(Note.where(\.id == 7).set(\.title, to: "Room 101"))
            try tx.update(Note.where(\.id == 8).set(\.title, to: "URGENT"))
        }
        let recent = Note.where(\.pinned == true).order(by: \.created, .descending).limit(20)
        let notes = try store.read { tx in try tx.fetch(recent) }
        #expect(notes.count == 20)
        let coded = Note.where(.regexp(\.title, "^[A-Z].*[0-9]{3}$"))
        let urgent = Note.where(.regexp(\.title, "urgent|asap", isCaseSensitive: false))
        let numbered = Note.where(.regexp(\.title, #"^\w+ \d+$"#))
        try store.read { tx throws in
            #expect(try tx.fetch(numbered).map(\.id) == [7])
            #expect(try tx.fetch(coded).map(\.id) == [7])
            #expect(try tx.fetch(urgent).map(\.id) == [8])
        }
        var shown: [Int] = []
        func show(_ page: [Note]) { shown += page.map(\.id) }
        try store.read { tx in
            let query = Note.order(by: \.created).inOrderOfKey().limit(20)
            var page = try tx.fetch(query)
            while let last = page.last {
                show(page)
                page = try tx.fetch(query.after(last))
            }
        }
        #expect(shown.sorted() == Array(0..<50))
    }

    @Test func `Queries: groups`() throws {
        struct Article: Record {
            var id: Int
            var author: String
            var rank: Int
            var created: Date
            var isDraft = true
        }
        let lastYear = Date(timeIntervalSince1970: 0)
        var shown: [String] = []
        try store.write { tx in
            for id in 1...50 {
                let author = id.isMultiple(of: 5) ? "Grace" : id.isMultiple(of: 2) ? "Ada" : "Alan"
                try tx.insert(
                    Article(
                        id: id, author: author, rank: id,
                        created: Date(timeIntervalSince1970: Double(id))))
            }
            let authors = Article.where(\.created > lastYear).group(by: \.author)
                .having(.count > 10)
                .order(by: .average(\.rank), .descending)
                .limit(3)
            for (author, count, rank) in try tx.fetch(authors, .count, .average(\.rank)) {
                shown.append("\(author) \(count) \(rank)")
            }
            let newest = Article.order(by: \.created, .descending).limit(100)
            for (author, isDraft, count) in try tx.fetch(
                newest.group(by: \.author, \.isDraft), .count)
            {
                shown.append("\(author) \(isDraft) \(count)")
            }
            let unpublished = Article.group(by: \.author).having(.min(\.isDraft) == true)
            #expect(try tx.fetch(unpublished, .count).count == 3)
            if let (count, first, last) = try tx.aggregate(
                Article.all, .count, .min(\.created), .max(\.created))
            {
                shown.append("\(count) \(last.timeIntervalSince(first))")
            }
        }
        #expect(shown.prefix(2).sorted() == ["Ada 20 25.0", "Alan 20 25.0"])
        #expect(
            shown[2...].sorted() == ["50 49.0", "Ada true 20", "Alan true 20", "Grace true 10"])
    }

    @Test func `Queries: values inside of JSON`() throws {
        struct Customer: Record {
            struct Address: Codable {
                var city: String
                var zip: Int?
            }
            var id: Int
            var address: Address
            var billing: Address?
            var tags: [String]
            static var jsonPaths: [PartialKeyPath<Customer>: JSONPath] {
                [\.billing?.city: JSONPath("billing", "city"), \.tags[0]: JSONPath("tags", 0)]
            }
        }
        let inOslo = Customer.where(\.address.city == "Oslo" && \.address.zip != nil)
        let sorted = Customer.where(.hasPrefix(\.address.city, "O")).order(by: \.address.zip)
        let billed = Customer.where(\.billing?.city == "Oslo" || \.tags[0] == "new")
        let oslo = Customer.Address(city: "Oslo", zip: 150)
        let rome = Customer.Address(city: "Rome")
        try store.write { tx throws in
            try tx.create(Customer.self)
            try tx.insert(Customer(id: 1, address: oslo, tags: []))
            try tx.insert(Customer(id: 2, address: rome, billing: oslo, tags: ["x"]))
            try tx.insert(Customer(id: 3, address: rome, tags: ["new"]))
            #expect(try tx.fetch(inOslo, \.id) == [1])
            #expect(try tx.fetch(sorted, \.id) == [1])
            #expect(try tx.fetch(billed.order(by: \.id), \.id) == [2, 3])
        }
    }

    @Test func `Queries: some columns of a record`() throws {
        struct Note: Record {
            var id: Int
            var title: String
            var pinned: Bool
            var body: Data
        }
        var shown: [String] = []
        try store.write { tx in
            try tx.insert(Note(id: 1, title: "a", pinned: true, body: Data(count: 10_000)))
            for (id, title) in try tx.fetch(Note.order(by: \.title), \.id, \.title) {
                shown.append("\(id) \(title)")
            }
            let titles = try tx.fetch(Note.where(\.pinned == true), \.title)  // [String]
            shown += titles
        }
        #expect(shown == ["1 a", "a"])
    }

    @Test func `Queries: rows without records`() async throws {
        struct Note: Record {
            var id: Int
            var pinned: Bool
            var body: Data
        }
        try await store.write { tx in
            try tx.insert(Note(id: 1, pinned: true, body: Data(count: 10_000)))
            try tx.insert(Note(id: 2, pinned: false, body: Data(count: 7)))
        }
        let byteCount = try await store.read { tx in
            let body = try Note.column(\.body)
            var count = 0
            try tx.forEachRow(Note.where(\.pinned == true), reading: [\.body]) { row in
                count += try row.bytes(body).count  // a Span<UInt8>: nothing is copied
            }
            return count
        }
        #expect(byteCount == 10_000)
    }

    @Test func `Queries: two properties, and calculations`() throws {
        struct Download: Record {
            var id: Int
            var bytesDone: Int
            var bytesTotal: Int
            var seconds: Double
            var finished: Date?
        }
        struct Item: Record {
            var id: Int
            var order: Int
            var price: Int
            var count: Int
        }
        struct Account: Record {
            var id: Int
            var balance: Int
        }
        struct Uncovered: Error {}
        try store.write { tx in
            for id in 1...10 {
                try tx.insert(
                    Download(id: id, bytesDone: id * 10, bytesTotal: 100, seconds: 4))
                try tx.insert(Item(id: id, order: id % 2, price: 10, count: id))
            }
        }
        var shown: [String] = []
        let unfinished = Download.where(\.bytesDone < \.bytesTotal && \.finished == nil)
        let nearly = Download.where(\.bytesDone * 10 > \.bytesTotal * 9)
        let slowest = Download.order(by: .double(\.bytesDone) / \.seconds).limit(10)
        try store.read { tx in
            shown.append("\(try tx.count(unfinished)) \(try tx.count(nearly))")
            shown.append("\(try tx.fetch(slowest).map(\.id))")
            let worth: Calculation<Item, Int> = \.price * \.count
            let orders = Item.group(by: \.order).having(.sum(worth) > 100)
                .order(by: .sum(worth), .descending)
            for (order, sum, greatest) in try tx.fetch(orders, .sum(worth), .max(worth)) {
                shown.append("\(order) \(sum) \(greatest ?? 0)")
            }
        }
        try store.write { tx in
            try tx.update(Item.where(\.order == 7).set(\.count, to: \.count + 1))
            try tx.update(
                Download.where(\.finished != nil).set(\.bytesDone, to: \.bytesTotal))
            try tx.insert([Account(id: 1, balance: 50), Account(id: 2, balance: 0)])
        }
        let amount = 30
        try store.write { tx in
            let covered = Account.where(\.id == 1 && \.balance >= amount)
            guard try tx.update(covered.set(\.balance, to: \.balance - amount)) == 1 else {
                throw Uncovered()
            }
            try tx.update(Account.where(\.id == 2).set(\.balance, to: \.balance + amount))
        }
        let balances = try store.read { tx in try tx.fetch(Account.order(by: \.id), \.balance) }
        #expect(balances == [20, 30])
        #expect(shown == ["9 1", "\(Array(1...10))", "0 300 100", "1 250 90"])
    }

    @Test func `Queries: several references`() throws {
        struct Country: Record {
            var id: Int
            var name: String
        }
        struct Author: Record {
            static var references: [Reference<Self>] { [Reference(\.country, to: Country.self)] }
            var id: Int
            var name: String
            var country: Int?
        }
        struct Article: Record {
            static var references: [Reference<Self>] {
                [Reference(\.author, to: Author.self), Reference(\.editor, to: Author.self)]
            }
            var id: Int
            var author: Int
            var editor: Int?
            var title: String
            var created = Date(timeIntervalSince1970: 0)
        }
        struct Comment: Record {
            static var references: [Reference<Self>] { [Reference(\.article, to: Article.self)] }
            var id: Int
            var article: Int
        }
        struct Person: Record {
            static var references: [Reference<Self>] { [Reference(\.manager, to: Person.self)] }
            var id: Int
            var manager: Int?
        }
        try store.write { tx in
            try tx.insert(Country(id: 1, name: "Norway"))
            try tx.insert(Author(id: 1, name: "Ada", country: 1))
            try tx.insert(Author(id: 2, name: "Grace"))
            try tx.insert(Article(id: 1, author: 1, editor: nil, title: "Notes"))
            try tx.insert(Article(id: 2, author: 1, editor: 2, title: "Engines"))
            try tx.insert(Comment(id: 1, article: 2))
            try tx.insert(Person(id: 1))
        }
        var shown: [String] = []
        func print(_ title: String, _ name: String) { shown.append("\(title) \(name)") }
        try store.read { tx throws in
            let edited = Article.order(by: \.title).leftJoining(\.editor, to: Author.all)
            for (article, editor) in try tx.fetch(edited) {
                print(article.title, editor?.name ?? "nobody")
            }
            let all = Article.all.joining(\.author, to: Author.all)
                .leftJoining(\Author.country, to: Country.all)
                .leftJoining(\Article.editor, to: Author.all)
            for (article, author, country, editor) in try tx.fetch(all) {
                print("\(article.id)\(author.id)", "\(country?.id ?? 0)\(editor?.id ?? 0)")
            }
            _ = try tx.fetch(Person.all.leftJoining(\.manager, to: Person.all))
            let authors = Author.order(by: \.name)
                .including(all: Article.where(\.title != "").order(by: \.title), by: \.author)
            for (author, articles) in try tx.fetch(authors) {
                print(author.name, articles.map(\.title).joined(separator: ", "))
            }  // articles: [Article]
            let discussed = Article.all.including(all: Comment.order(by: \.id), by: \.article)
            let everything = Author.all.including(all: discussed, by: \.author)
                .including(all: Article.all, by: \.editor)
            for (author, written, edited) in try tx.fetch(everything) {
                for (article, comments) in written { print(article.title, "\(comments.count)") }
                print(author.name, "\(edited.count)")
            }
            let newest = Article.order(by: \.created, .descending).limit(3, per: \.author)
            let lists = Author.all.including(all: newest, by: \.author)
            if isEngine4 { #expect(try tx.fetch(lists).map(\.1.count) == [2, 0]) }
            let writing = Author.where(.exists(Article.where(\.title != ""), by: \.author))
            let silent = Author.where(!.exists(Article.all, by: \.author))
            for query in [writing, silent] {
                print("exists", try tx.fetch(query).map(\.name).joined())
            }
        }
        #expect(
            shown == [
                "Engines Grace", "Notes nobody", "11 10", "21 12", "Ada Engines, Notes", "Grace ",
                "Notes 0", "Engines 1", "Ada 0", "Grace 1", "exists Ada", "exists Grace",
            ])
    }

    @Test func `Queries: trees`() throws {
        struct Folder: Record {
            static var references: [Reference<Self>] { [Reference(\.parent, to: Folder.self)] }
            static var indexes: [Index<Self>] { [Index(\.parent)] }
            var id: Int
            var name: String
            var parent: Int?
        }
        try store.write { tx in
            for id in 1...4 {
                let name = id == 2 ? "Mail" : "f\(id)"
                try tx.insert(Folder(id: id, name: name, parent: id == 1 ? nil : id - 1))
            }
        }
        let id = 4
        let mail = Folder.where(\.name == "Mail")
        let inside = Folder.where(.isDescendant(of: mail, by: \.parent))
        let withItself = Folder.where(\.name == "Mail" || .isDescendant(of: mail, by: \.parent))
        let above = Folder.where(.isAncestor(of: Folder.where(\.id == id), by: \.parent))
        try store.read { tx throws in
            #expect(try tx.fetch(inside).map(\.id).sorted() == [3, 4])
            #expect(try tx.fetch(withItself).map(\.id).sorted() == [2, 3, 4])
            #expect(try tx.fetch(above).map(\.id).sorted() == [1, 2, 3])
            struct Step: Decodable { var name: String, depth: Int }
            let path = try tx.rows(
                """
                WITH RECURSIVE path(id, depth) AS (
                    SELECT \(id), 0
                    UNION ALL SELECT parent, depth + 1 FROM path JOIN folder USING (id)
                ) SELECT name, depth FROM path JOIN folder USING (id) ORDER BY depth DESC
                """, as: Step.self)
            #expect(path.map(\.name) == ["f1", "Mail", "f3", "f4"])
        }
    }

    struct Mail: Record {
        static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.subject, \.body) }
        var id: Int64?
        var subject: String
        var body: String
    }

    @Test func `Queries: words in texts`() throws {
        try store.write { tx in
            try tx.insert(Mail(subject: "Release notes", body: "A Swift database"))
            try tx.insert(Mail(subject: "Notes", body: "on the release of a database"))
        }
        let input = "dat swi"
        let both = Mail.where(.matching("swift database"))
        let typing = Mail.where(.matching(.prefixes(of: input))).limit(20)
        let subjects = Mail.where(.matching(.phrase("release notes"), in: \.subject))
        try store.read { tx throws in
            for query in [both, typing, subjects] {
                #expect(try tx.fetch(query).map(\.id) == [1])
            }
            let input = "database release"
            let words = try FullTextPattern.allWords(of: input).expression(for: Mail.self)
            let rows = try tx.rows(
                """
                SELECT mail.subject, snippet(mail_text) AS part FROM mail_text
                JOIN mail ON mail.id = docid WHERE mail_text MATCH \(words)
                """)
            let parts = rows.map { String(describing: $0["part"]) }
            #expect(parts.count == 2 && parts[1].contains("<b>release</b>"))
        }
    }

    @Test func `Queries: references and joins`() throws {
        struct Article: Record {
            static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
            var id: Int64?
            var author: Int64?
            var title: String
        }
        try store.write { tx in
            try tx.insert(Author(id: 1, name: "Ada"))
            try tx.insert(Article(id: 1, author: 1, title: "Notes"))
        }
        let ofAda =
            Article.where(Author.where(\.name == "Ada").contains(\.author) && \.title != "")
        #expect(try store.read { tx in try tx.fetch(ofAda).count } == 1)
        var names: [String] = []
        try store.read { tx in
            let join = Article.where(\.title != "").joining(\.author, to: Author.order(by: \.name))
            for (article, author) in try tx.fetch(join) {
                names.append("\(article.title) by \(author.name)")
            }
        }
        #expect(names == ["Notes by Ada"])
    }

    // MARK: Records

    @Test func `Records: a type is a table`() throws {
        struct Note: Record {
            var id: UUID
            var title: String
            var pinned: Bool
            var created: Date
            var body: Data
        }

        let note = Note(id: UUID(), title: "a", pinned: true, created: Date(), body: Data([1]))
        try store.write { tx in try tx.insert(note) }
        let pinned = try store.read { tx in
            try tx.fetch(Note.where(\.pinned == true).order(by: \.created, .descending).limit(20))
        }
        #expect(pinned.map(\.id) == [note.id])
    }

    @Test func `Records: dates in SQL`() throws {
        struct Note: Record {
            var id: Int
            var title: String
            var created: Date
        }
        let date = Date()
        let note = Note(id: 1, title: "a", created: date + 1)
        try store.write { tx in try tx.insert(note) }
        try store.read { tx throws in
            let rows = try tx.rows(
                "SELECT title FROM note WHERE created > \(date, for: \Note.created)")
            let row = try tx.firstRow("SELECT max(created) AS latest FROM note")
            let latest = try row?.date("latest", as: tx.dateEncoding(of: \Note.created))
            #expect(rows.count == 1 && latest == note.created)
        }
    }

    @Test func `Records: an update with an expectation`() throws {
        struct Note: Record {
            var id: Int
            var version: Int
        }
        try store.write { tx in
            var note = Note(id: 1, version: 1)
            try tx.insert(note)
            let version = note.version
            note.version += 1
            try tx.update(note, expecting: \.version == version)
            #expect(try tx.find(Note.self, 1)?.version == 2)
        }
    }

    @Test func `Records: bytes in pieces`() async throws {
        struct Film: Record {
            var id: UUID
            var title: String
            var video: Data
        }
        struct FilmTitle: Record {
            static let table = "film"
            var id: UUID
            var title: String
        }
        let film = Film(id: UUID(), title: "Metropolis", video: Data())
        let upload = AsyncStream { continuation in
            continuation.yield(Data(count: 1000))
            continuation.finish()
        }
        let size = 1000
        try await store.write { tx in try tx.insert(film) }
        try await store.writeBlob(
            \.video, in: Film.self, key: film.id, byteCount: size, from: upload)
        var sent = 0
        for try await chunk in store.chunks(of: \.video, in: Film.self, key: film.id) {
            sent += chunk.count
        }
        #expect(sent == size)
        let titles = try await store.read { tx in try tx.fetch(FilmTitle.all) }
        #expect(titles.map(\.title) == ["Metropolis"])
    }

    @Test func `Records: values that stay in the file`() throws {
        struct Letter: Record {
            var id: UUID
            var title: String
            var body: Lazy<Data>
        }

        let (id, data) = (UUID(), Data([1, 2]))
        var shown: [Data] = []
        func show(_ data: Data) { shown.append(data) }
        try store.write { tx in
            try tx.insert(Letter(id: id, title: "Hello", body: Lazy(data)))
            var letter = try tx.fetch(Letter.order(by: \.title))[0]
            letter.title = "Hello again"
            try tx.update(letter)
            let body = try tx.load(\.body, of: letter)
            show(body)
        }
        #expect(shown == [data])
    }

    @Test func `Records: encodings`() throws {
        struct Note: Record {
            var id: UUID
            var created: Date
            static var encodings: [PartialKeyPath<Note>: ColumnEncoding] {
                [\.created: .date(.iso8601), \.id: .uuidText]
            }
        }
        let note = Note(id: UUID(), created: Date(timeIntervalSince1970: 0))
        let row = try store.write { tx in
            try tx.insert(note)
            return try tx.firstRow("SELECT id, created FROM note")
        }
        #expect(try row?.get(0, as: String.self) == note.id.uuidString)
        #expect(try row?.get(1, as: String.self).hasPrefix("1970-01-01") == true)
    }

    @Test func `Records: stored properties`() throws {
        struct Note: Record {
            static var access: RecordAccess { .storedProperties }
            var id: UUID
            var title: String
        }
        #expect(try Note.accessReport().reason == nil)
    }

    // MARK: Coming from FMDB and GRDB

    @Test func `FMDB, GRDB: what a block has of a database`() throws {
        try store.write { tx in
            try tx.executeScript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
            #expect(try tx.lastInsertedRowID == 1)
            #expect(try tx.lastChangeCount == 1)
            #expect(try tx.rows("SELECT a FROM t").count == 1)
            let cursor = try tx.cursor("SELECT a FROM t")
            #expect(try cursor.next() != nil)
            let statement = try tx.prepare("SELECT a FROM t WHERE a = ?")
            try statement.bind([.integer(1)])
            #expect(try statement.step())
            #expect(try tx.tableExists("t"))
            #expect(try tx.columnExists("a", in: "t"))
            #expect(try tx.columns(of: "t").count == 1)
            #expect(try tx.indexes(of: "t").isEmpty)
            #expect(try tx.foreignKeys(of: "t").isEmpty)
            #expect(try tx.userVersion == 0)
            #expect(try tx.applicationID == 0)
            try tx.validate("SELECT a FROM t")
        }
    }

    // MARK: Schema and migrations

    @Test func `Schema: what a type declares`() throws {
        struct Note: Record {
            var id: UUID
            var title: String
            var author: Int64?
        }
        struct Article: Record {
            static var indexes: [Index<Self>] {
                [Index(\.created), Index(\.author, \.title, isUnique: true)]
            }
            static var references: [Reference<Self>] {
                [Reference(\.author, to: Author.self, onDelete: .cascade)]
            }
            static var defaults: [Default<Self>] { [Default(\.pinned, false)] }

            var id: Int64?
            var author: Int64
            var title: String
            var created: Date
            var pinned: Bool
        }
        try store.write { tx in
            try tx.create(Note.self)
            try tx.create(Author.self)
            try tx.create(Article.self)
        }
        let tables = try store.read { tx in
            try tx.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        }
        #expect(tables.count == 3)
    }

    @Test func `Schema: clauses of the table`() throws {
        struct Account: Record {
            static let isAutoincrement = true
            static var collations: [PartialKeyPath<Self>: Collation] { [\.email: .nocase] }
            static var checks: [CheckConstraint<Self>] {
                [CheckConstraint(\.balance >= 0), CheckConstraint(sql: "length(name) < 100")]
            }
            static var indexes: [Index<Self>] {
                [
                    Index(\.email, isUnique: true),
                    Index(\.name, where: \.closed == nil),
                    Index(sql: "lower(name)"),
                ]
            }
            static var defaults: [Default<Self>] {
                [.now(\.created), Default(\.name, sql: "hex(randomblob(4))")]
            }

            var id: Int64?
            var email: String
            var name: String
            var balance: Int
            var closed: Date?
            var created: Date
        }
        try store.write { tx throws in
            try tx.create(Account.self)
            try tx.execute("INSERT INTO account (email, balance) VALUES ('a@b', 1)")
            let account = try tx.first(Account.where(\.email == "A@B"))
            #expect(account?.name.count == 8)
        }
    }

    @Test func `Schema: triggers and views`() throws {
        struct Sale: Record {
            var id: Int64?
            var book: Int64
            var price: Double
        }
        struct Book: Record {
            static var triggers: [Trigger<Self>] {
                [
                    Trigger(
                        "book_sold", .after, .update(of: \.sold), when: "new.sold IS NOT NULL",
                        sql: "INSERT INTO sale(book, price) VALUES (new.id, new.price)")
                ]
            }
            var id: Int64?
            var shelf: Int64
            var price: Double
            var sold: Date?
        }

        struct ShelfValue: Record {
            static var view: SQL? {
                """
                SELECT shelf AS id, count(*) AS books, sum(price) AS total
                FROM book WHERE sold IS NULL GROUP BY shelf
                """
            }
            var id: Int64
            var books: Int
            var total: Double
        }
        try store.write { tx throws in
            try tx.create(Sale.self)
            try tx.create(Book.self)
            try tx.create(ShelfValue.self)
            try tx.insert([
                Book(id: 1, shelf: 4, price: 2), Book(id: 2, shelf: 4, price: 3),
            ])
            try tx.update(Book.where(\.id == 1).set(\.sold, to: Date()))
            #expect(try tx.fetch(Sale.all).map(\.price) == [2])
            #expect(try tx.fetch(ShelfValue.all).map(\.total) == [3])
        }
    }

    @Test func `Schema: migrations`() async throws {
        let migrations = [
            Migration("create articles") { tx in
                struct Article: Record {  // as it was then
                    var id: Int64?
                    var title: String
                }
                try tx.create(Article.self)
            },
            Migration("trim titles") { tx in
                try tx.execute("UPDATE article SET title = trim(title)")
            },
        ]
        try await store.migrate(migrations) {
            print("\($0.name): \($0.completedCount) of \($0.totalCount)")
        }
        struct Article: Record {
            var id: Int64?
            var title: String
        }
        try Migration.rehearse(migrations, for: Article.self)
        try await store.write { tx in
            try tx.executeScript(
                """
                CREATE TABLE book (
                    id INTEGER PRIMARY KEY, number INTEGER, title TEXT NOT NULL, subtitle TEXT,
                    created REAL NOT NULL);
                INSERT INTO book VALUES (1, 7, 'Logic', NULL, 978307200);
                """)
        }
        let others = [
            Migration("number is a text") { tx in
                struct Book: Record {  // as it is from then on
                    var id: Int64?
                    var isbn: String
                    var title: String
                    var added: Date
                }
                try tx.alter(Book.self) { table in
                    table.set(\.isbn, sql: "CAST(number AS TEXT)")
                    table.rename("created", to: \.added)
                    table.drop("number", "subtitle")
                }
            },
            Migration("better names") { tx in
                try tx.table("book").renameColumn("isbn", to: "code")
                try tx.table("book").dropColumns("title")
                try tx.table("book").rename(to: "volume")
            },
        ]
        try await store.migrate(migrations + others)
        let row = try await store.read { tx in try tx.firstRow("SELECT * FROM volume") }
        #expect(row?.values == [1, "7", .real(0)])
    }

    @Test func `SchemaAndMigrations: a file of GRDB`() async throws {
        try await store.write { tx in
            try tx.executeScript(
                """
                CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
                CREATE TABLE player (
                    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,
                    joined DATETIME NOT NULL);
                INSERT INTO player VALUES (1, 'Ada', '2023-11-15 00:00:00.250');
                """)
        }
        let migrations = [
            Migration("all that GRDB's migrations made") { tx in
                struct Player: Record {  // as it was then
                    static var encodings: [PartialKeyPath<Player>: ColumnEncoding] {
                        [\.joined: .date(.grdb)]
                    }
                    var id: Int64?
                    var name: String
                    var joined: Date
                }
                try tx.create(Player.self)
            }
        ]
        try await store.migrate(migrations)
        #expect(try await store.pendingMigrations(migrations).isEmpty)
        let other = try await Store(.memory)
        try await other.migrate(migrations)
        #expect(try await other.read { tx in try tx.tableExists("player") })
    }

    // MARK: Life of a key

    private static func askBack(_ letters: UnsafeRawBufferPointer) async throws -> [UInt8] {
        Array(letters)
    }

    @Test func `Life of a key: making a keyring, adding and changing slots`() async throws {
        let askBack = Self.askBack
        let (path, newPath) = (folder.path("team.db"), folder.path("copy.db"))
        let (text, second, new) = ("open sesame", "second", "new")
        let privateKey = Curve25519.KeyAgreement.PrivateKey()
        let publicKey = privateKey.publicKey.rawRepresentation
        let identity = KeyCredential.identity(privateKey.rawRepresentation)
        let store = try await Store(path: path, key: .keyring(.passphrase(text)))
        try await store.keys.addRecoveryKey(label: "safe") { letters in
            try await askBack(letters)
        }
        let ops = try await store.keys.add(.passphrase(second), label: "ops").id
        try await store.keys.add(.recipient(publicKey), label: "billing")
        for slot in try store.keys.slots { print(slot.id, slot.kind, slot.label) }
        try await store.keys.change(ops, to: .passphrase(new))
        try await store.keys.remove(ops)
        let rotated = try await store.rotate()
        print("key \(rotated.keyID), writes waited \(rotated.pause)")
        try await store.backup(to: newPath, key: .keyring(.passphrase(new)))
        #expect(try store.keys.slots.map(\.label) == ["first", "safe", "billing"])
        #expect(try Keyring(of: newPath).slots.count == 1)
        try await store.close()
        try identity.withIdentityLetters { letters in
            try Data(letters).write(to: URL(filePath: folder.path("identity")))
        }
        try await openByIdentity(path, folder.path("identity"))
    }

    private static func readFromPaper(_ letters: UnsafeRawBufferPointer) throws -> [UInt8] {
        Array(letters)
    }

    @Test func `Life of a key: a store with a key of its own gets a keyring`() async throws {
        let readFromPaper = Self.readFromPaper
        let (path, old, new) = (folder.path("old.db"), "open sesame", "new")
        try await Store(path: path, key: .passphrase(old)).close()
        try await Store.enableKeyring(
            path, key: .passphrase(old), as: .passphrase(new), label: "me"
        ) { letters in
            try readFromPaper(letters)
        }
        #expect(try Keyring(of: path).slots.map(\.label) == ["me", "recovery"])
    }

    @Test func `Life of a key: somebody leaves`() async throws {
        let (path, new) = (folder.path("team.db"), "new")
        let store = try await Store(path: path, key: .keyring(.passphrase("open sesame")))
        let ops = try await store.keys.add(.passphrase(new), label: "ops").id
        let leaver = try await store.keys.add(.passphrase("theirs"), label: "leaver").id
        try await store.replaceRootKey(dropping: [leaver]) { plan in
            try plan.keep(ops, .passphrase(new))
        }
        #expect(try store.keys.slots.map(\.label) == ["first", "ops"])
        try await store.close()
    }

    @Test func `Life of a key: a lost keyring, and a key of its own`() async throws {
        let (path, copyPath) = (folder.path("team.db"), folder.path("copy"))
        let (text, new) = ("open sesame", "new")
        let store = try await Store(path: path, key: .keyring(.passphrase(text)))
        try await store.keys.backUp(to: copyPath)
        let letters = try store.keys.withRootBackup { Array($0) }
        try await store.close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        do {
            try await Keyring.restore(from: copyPath, for: path, by: .passphrase(text))
            try await Keyring.rebuild(
                for: path, rootBackup: letters, as: .passphrase(new), label: "me")
        }
        #expect(try Keyring(of: path).slots.map(\.label) == ["me"])
        try await leaveKeyring(Store(path: path, key: .keyring(.passphrase(new))))
    }

    private func leaveKeyring(_ store: Store) async throws {
        let new = "new"
        let report = try await store.rekey(to: .passphrase(new), abandonsKeyring: true)
        #expect(report.abandonedKeyring != nil)
        try await store.close()
    }

    private func openByIdentity(_ path: String, _ identityPath: String) async throws {
        let letters = try Data(contentsOf: URL(filePath: identityPath))
        let store = try await Store(path: path, key: .keyring(.identity(letters: letters)))
        #expect(try store.keys.slots.count == 3)
        try await store.close()
    }

    @Test func `Life of a key: a service wraps a secret`() async throws {
        let path = folder.path("team.db")
        @Sendable func encrypt(_ secret: UnsafeRawBufferPointer) throws -> [UInt8] {
            secret.map { $0 ^ 0x5a }
        }
        func decrypt(_ blob: [UInt8]) -> [UInt8] { blob.map { $0 ^ 0x5a } }
        let file = [UInt8](repeating: 1, count: 32)
        let store = try await Store(path: path, key: .keyring(.keyFile(file)))
        let kms = try await store.keys.add(
            .external { secret in try encrypt(secret) }, label: "kms")
        let blob = try Keyring(of: path).blob(of: kms.id)
        let key = StoreKey.keyring(.external(decrypt(blob), slot: kms.id))
        try await store.close()
        let opened = try await Store(path: path, key: key)
        #expect(try opened.keys.ownSlotID == kms.id)
        try await opened.close()
    }

    // MARK: Keys

    @Test func `Keys: a random key, and a source of keys`() async throws {
        let path = self.folder.path("random.db")
        let folder = self.folder.url.appending(path: "keys")
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            let key = StoreKey.random()
            try key.withBytes { bytes in
                try Data(bytes).write(
                    to: folder.appending(path: "key"), options: .withoutOverwriting)
            }
            let store = try await Store(path: path, key: key)
            try await store.close()
        }
        do {
            let store = try await Store(
                path: path, key: .raw(try Data(contentsOf: folder.appending(path: "key"))))
            try await store.close()
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
        #expect(attributes[.posixPermissions] as? Int == 0o700)

        let secret = self.folder.path("secret")
        try Data("open sesame\n".utf8).write(to: URL(filePath: secret))
        do {
            let path = self.folder.path("passphrase.db")
            let key: @Sendable () throws -> StoreKey = {
                try .passphrase(contentsOfFile: secret)
            }
            let store = try await Store(path: path, key: key())
            try await store.close()
            try await Store(path: path, key: .passphrase("open sesame")).close()
        }
    }

    @Test func `Keys: asking a person`() throws {
        let path = folder.path("asked.db")
        func prompt(_ text: String) -> String? { "open sesame" }
        do {
            let store = try Store.open(path: path) { failure in
                if let failure { print(failure.message) }
                return prompt("Passphrase: ").map { .passphrase($0) }
            }
            try store.close()
        }
    }

    @Test func `Keys: another key`() async throws {
        let text = "another"
        let report = try await store.rekey(to: .passphrase(text))
        #expect(report.isWholeFile)
        try await store.close()
        try await Store(path: folder.path(), key: .passphrase(text)).close()
    }

    // MARK: Maintenance

    @Test func `Maintenance: checks, backups and a copy of the file`() async throws {
        let (folder, day, path) = (self.folder.url.path, "2026-11-25", self.folder.path())
        func log(_ text: String) { Issue.record("\(text)") }
        let report = try await store.verify()
        for problem in report.problems { log(problem) }
        for page in report.damagedPages { log("\(page)") }
        if report.isGood { try await store.backup(to: "\(folder)/notes-\(day).db") }

        try await store.suspend()
        do {
            // copy the file here
            #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
            try FileManager.default.copyItem(atPath: path, toPath: "\(folder)/copy.db")
        } catch {
            try await store.resume()
            throw error
        }
        try await store.resume()

        let copy = try await Store(path: "\(folder)/copy.db", key: .numbered(1))
        #expect(try await copy.verify().isGood)
        try await copy.close()
        try await store.close()
        do {
            let key = StoreKey.numbered(1)
            let backup = "\(folder)/notes-\(day).db"
            let report = try await Store.restore(from: backup, key: key, to: path)
            print("the damaged store is \(report.oldPath ?? "not there")")
            #expect(report.oldPath != nil)
        }
    }

    @Test func `Maintenance: small steps`() async throws {
        var configuration = Configuration.testing()
        configuration.incrementalVacuum = true
        let store = try await Store(
            path: folder.path("steps.db"), key: .numbered(1), configuration: configuration)
        try await store.write { tx in
            try tx.execute("CREATE TABLE t (a)")
            try tx.execute("INSERT INTO t VALUES (zeroblob(1000000))")
        }
        try await store.write { tx in try tx.execute("DELETE FROM t") }
        while try await store.incrementalVacuum(pageCount: 1_000) > 0 {}
        #expect(try await store.read { tx in try tx.scalar("PRAGMA freelist_count") } == 0)
    }

    // MARK: Transactions

    @Test func `Transactions: a body's value`() async throws {
        struct Note: Record {
            var id = UUID()
            var title: String
        }
        let note = Note(title: "a")
        let count = try await store.write { tx in
            try tx.insert(note)
            return try tx.count(Note.all)
        }
        #expect(count == 1)
    }

    // MARK: Coming from FMDB

    /// What FMDB's `FMDatabase` gives.
    private struct ForeignDatabase {
        let sqliteHandle: UnsafeMutableRawPointer
    }

    @Test func `FMDB: an open handle is shared`() throws {
        let raw = try RawConnection(folder.path("other.db"), key: 7)
        try #require(raw.run("CREATE TABLE t(a)") == 0)
        let database = ForeignDatabase(sqliteHandle: UnsafeMutableRawPointer(raw.db))
        let connection = try Connection(adopting: OpaquePointer(database.sqliteHandle))
        #expect(try connection.rows("SELECT a FROM t").isEmpty)
        connection.close()
    }
}
