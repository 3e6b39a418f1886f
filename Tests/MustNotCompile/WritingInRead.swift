// error: value of type 'ReadTransaction' has no member 'execute'
import Coffer

func write(in store: Store) throws {
    try store.read { tx in try tx.execute("DELETE FROM note") }
}
