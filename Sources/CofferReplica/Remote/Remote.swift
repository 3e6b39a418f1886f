import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A place that keeps objects which are written once: a folder, or a bucket of a storage service.
///
/// A replica rests on one property of it: of several that create the same name, exactly one
/// succeeds, and the object never changes afterwards. Coffer proves that before it uses a remote.
/// Everything that a remote gets is encrypted, except for names, sizes and times.
///
/// ```swift
/// let remote = try FolderRemote("/mnt/backups/notes")
/// ```
///
/// A remote of your own throws `StoreError` `.remoteUnavailable`, or an error that is no
/// `StoreError`, if the work may succeed later. An object may have been created all the same:
/// Coffer asks again. Any other `StoreError` reaches the caller.
///
/// Names are made of `a` to `z`, digits, dots, hyphens and slashes, and have at most 200
/// characters. No object has more than 8 MiB and 64 KiB.
public protocol Remote: Sendable {
    /// The place, as messages name it. It has no credentials.
    var place: String { get }

    /// Creates an object, unless there is one of that name.
    ///
    /// When it returns `.created`, the object survives a loss of power, and every later `read`
    /// finds it.
    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation>

    /// The bytes of an object, or a part of them; `nil` if it does not exist.
    ///
    /// - Parameters:
    ///   - name: The name of the object.
    ///   - range: Offsets, from 0; `nil` for all. A part beyond the end is left out.
    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?>

    /// Names that begin with a prefix, in the order of their bytes: at most 1 000, those after
    /// another name.
    ///
    /// The answer is only a hint: it may be old.
    func names(withPrefix prefix: String, after name: String) async throws -> [String]

    /// Deletes an object, if there is one.
    func delete(_ name: String) async throws
}

extension Remote {
    /// All bytes of an object; `nil` if it does not exist.
    public func read(_ name: String) async throws -> RemoteAnswer<[UInt8]?> {
        try await read(name, nil)
    }
}

/// The result of creating an object.
public enum RemoteCreation: Sendable {
    /// The object was created by this call.
    case created
    /// There was an object of that name: it is unchanged.
    case exists
}

/// An answer of a remote, with the time by the remote's clock.
public struct RemoteAnswer<Value: Sendable>: Sendable {
    /// The answer itself.
    public let value: Value
    /// When the remote answered, by its own clock; `nil` if it did not tell.
    public let time: Date?

    /// Makes an answer.
    public init(_ value: Value, time: Date?) {
        (self.value, self.time) = (value, time)
    }
}
