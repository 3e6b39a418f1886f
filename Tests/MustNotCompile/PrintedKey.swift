// error: argument type 'StoreKey' does not conform to expected type 'Copyable'
import Coffer

func leak() {
    let key = StoreKey.passphrase("text")
    print(key)
}
