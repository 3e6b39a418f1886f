// error: 'key' consumed more than once
import Coffer

func openTwice() throws {
    let key = StoreKey.passphrase("text")
    _ = try Store(path: "a.db", key: key)
    _ = try Store(path: "b.db", key: key)
}
