#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Reads and writes at an offset of an open file, in as many system calls as it takes.
package enum PositionedIO {
    /// Reads until the buffer is full or the file ends.
    ///
    /// - Returns: The number of bytes read; `nil` for an error, whose number is in `errno`.
    package static func read(
        into bytes: UnsafeMutableRawBufferPointer, from descriptor: Int32, at offset: off_t
    ) -> Int? {
        var count = 0
        while count < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
            let more = pread(descriptor, rest.baseAddress, rest.count, offset + off_t(count))
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { return nil }
            if more == 0 { break }
            count += more
        }
        return count
    }

    /// Reads some bytes into an array.
    ///
    /// - Returns: Fewer bytes if the file ends before; `nil` for an error, whose number is in
    ///   `errno`.
    package static func bytes(
        count: Int, from descriptor: Int32, at offset: off_t
    ) -> [UInt8]? {
        var filledCount: Int?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filledCount = read(
                into: UnsafeMutableRawBufferPointer(buffer), from: descriptor, at: offset)
            filled = filledCount ?? 0
        }
        return filledCount == nil ? nil : bytes
    }

    /// Writes all bytes.
    ///
    /// - Returns: `false` for an error, whose number is in `errno`. Some bytes may be written then.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: off_t
    ) -> Bool {
        var count = 0
        while count < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
            let more = pwrite(descriptor, rest.baseAddress, rest.count, offset + off_t(count))
            if more < 0, errno == EINTR { continue }
            if more == 0 { errno = EIO }
            guard more > 0 else { return false }
            count += more
        }
        return true
    }
}
