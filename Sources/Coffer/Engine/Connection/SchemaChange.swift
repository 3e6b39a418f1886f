import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The handle whose schema the current thread is changing.
///
/// FTS3 asks a module for a tokenizer without naming the connection. Only with this handle can
/// CREATE fail if there is no tokenizer of that name.
enum SchemaChange {
    static var handle: Handle? {
        pthread_getspecific(threadKey).map {
            // Unretained: it is set while a statement of the handle steps.
            Unmanaged<Handle>.fromOpaque($0).takeUnretainedValue()
        }
    }

    static func onThread<R>(of handle: Handle, _ body: () -> R) -> R {
        let outer = pthread_getspecific(threadKey)
        pthread_setspecific(threadKey, Unmanaged.passUnretained(handle).toOpaque())
        defer { pthread_setspecific(threadKey, outer) }
        return body()
    }

    private static let threadKey: pthread_key_t = {
        var key = pthread_key_t()
        // Fails only when a process has used up its keys (1 024 on Linux). The key is then 0 and
        // belongs to someone else, so this is checked.
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "no thread-specific key is left in this process")
        return key
    }()
}

extension Statement {
    @inline(never)
    func stepChangingSchema(_ raw: OpaquePointer) -> Int32 {
        handle.schemaState.hasChanged = true
        return SchemaChange.onThread(of: handle) { sqlite3_step(raw) }
    }
}
