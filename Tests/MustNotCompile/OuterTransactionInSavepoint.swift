// error: overlapping accesses to 'tx'
import Coffer

func useOuter(_ store: Store) throws {
    try store.write { tx in
        try tx.savepoint { part in try tx.execute("SELECT 1") }
    }
}
