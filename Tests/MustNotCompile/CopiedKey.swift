// error: 'key' consumed more than once
import Coffer

func copy() {
    let key = StoreKey.passphrase("text")
    let first = key
    let second = key
    first.withBytes { _ in }
    second.withBytes { _ in }
}
