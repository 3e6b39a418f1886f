/// Stores whose key is asked for again while it is wrong.
extension Store {
    /// Opens or creates a store with a key from `askForKey`, which is called again while the key is
    /// wrong.
    ///
    /// ```swift
    /// let store = try Store.open(path: "notes.db") { failure in
    ///     if let failure { print(failure.message) }
    ///     return prompt("Passphrase: ").map { .passphrase($0) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - mode: What to do about the file's existence.
    ///   - configuration: How to open it.
    ///   - askForKey: Gets the error of the key that it gave before, `nil` at first. Returns the
    ///     next key, or `nil` to give up. Each key is wiped before the next call.
    /// - Throws: What `askForKey` throws; `StoreError` `.wrongKey` if it has given up, `.misuse` if
    ///   it never gave a key that can be one; other errors of opening at once, see
    ///   `init(path:key:mode:configuration:)`.
    public static func open(
        path: String, mode: OpenMode = .createIfMissing, configuration: Configuration = .init(),
        askForKey: (_ failure: StoreError?) throws -> StoreKey?
    ) throws -> Store {
        var failure: StoreError?
        while let key = try askForKey(failure) {
            do throws(StoreError) {
                try key.check()
            } catch {
                failure = error
                continue
            }
            do throws(StoreError) {
                return Store(
                    core: try StoreCore(
                        path: path, key: key, mode: mode, configuration: configuration))
            } catch {
                guard error.code == .wrongKey else { throw error }
                failure = error
            }
        }
        throw failure ?? noKey
    }

    /// Opens or creates a store as the synchronous form, without blocking a thread of the
    /// cooperative pool.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - mode: What to do about the file's existence.
    ///   - configuration: How to open it.
    ///   - askForKey: As in the synchronous form.
    /// - Throws: As the synchronous form.
    public static func open(
        path: String, mode: OpenMode = .createIfMissing, configuration: Configuration = .init(),
        askForKey: (_ failure: StoreError?) async throws -> StoreKey?
    ) async throws -> Store {
        var failure: StoreError?
        while let key = try await askForKey(failure) {
            do throws(StoreError) {
                try key.check()
            } catch {
                failure = error
                continue
            }
            do {
                return try await Store(
                    path: path, key: key, mode: mode, configuration: configuration)
            } catch let error as StoreError where error.code == .wrongKey {
                failure = error
            }
        }
        throw failure ?? noKey
    }

    /// Opens or creates a store as the other asynchronous form, with an `askForKey` that does not
    /// wait.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - mode: What to do about the file's existence.
    ///   - configuration: How to open it.
    ///   - askForKey: As in the synchronous form.
    /// - Throws: As the synchronous form.
    public static func open(
        path: String, mode: OpenMode = .createIfMissing, configuration: Configuration = .init(),
        askForKey: (_ failure: StoreError?) throws -> StoreKey?
    ) async throws -> Store {
        // Without this form the compiler would take the synchronous one, which derives the key on
        // the caller's thread.
        let waiting: (StoreError?) async throws -> StoreKey? = { try askForKey($0) }
        return try await open(
            path: path, mode: mode, configuration: configuration, askForKey: waiting)
    }

    private static var noKey: StoreError {
        StoreError(.misuse, "no key was given", hint: "Return a key, or do not open the store.")
    }
}
