// error: escaping closure captures 'inout' parameter 'tx'
import Coffer

func leave(_ store: Store) throws {
    try store.write { tx in
        Task { try tx.execute("SELECT 1") }
        try tx.execute("SELECT 1")
    }
}
