import Coffer

func ask(_ failure: StoreError?) -> StoreKey? { .passphrase("secret") }
func askAndWait(_ failure: StoreError?) async -> StoreKey? { .passphrase("secret") }

func synchronous() throws -> Store {
    try Store.open(path: "notes.db") { failure in ask(failure) }
}

/// An asker that does not wait takes an asynchronous form as well: the compiler would warn of an
/// `await` of the synchronous one.
func asynchronous() async throws -> [Store] {
    [
        try await Store.open(path: "notes.db") { failure in ask(failure) },
        try await Store.open(path: "notes.db", askForKey: ask),
        try await Store.open(path: "notes.db") { failure in await askAndWait(failure) },
        try await Store.open(path: "notes.db", askForKey: askAndWait),
    ]
}
