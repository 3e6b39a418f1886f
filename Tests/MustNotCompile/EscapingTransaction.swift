// error: implicit conversion to 'WriteTransaction?' is consuming
import Coffer

func keepTransaction(of store: Store) throws {
    var kept: WriteTransaction?
    try store.write { tx in kept = tx }
    _ = kept
}
