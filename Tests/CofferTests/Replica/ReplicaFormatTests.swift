import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct ReplicaFormatTests {
    private let keys = ReplicaKeys.testing()
    private let slot = Slot(term: 3, number: 0x1a2b)
    private let before = [UInt8](repeating: 5, count: 32)

    private func record() -> ReplicaRecord {
        ReplicaRecord(
            time: Date(timeIntervalSince1970: 1_800_000_000.125),
            remoteTime: Date(timeIntervalSince1970: 1_800_000_001),
            place: .init(
                salt: Array(1...8), frameCount: 77, checksum: Array(11...18)),
            pageCount: 12, digest: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, endsCommit: false,
            note: .init(owner: "här", interval: 1000),
            pages: (1...3).map { number in
                .init(number: number, bytes: [UInt8](repeating: UInt8(number), count: 512)[...])
            })
    }

    @Test func `a record reads as it was written, and names the one before`() throws {
        let sealed = try SealedRecord(.segment, record(), at: slot, after: before, by: keys)
        let (header, found) = try SealedRecord(sealed.bytes, at: slot).open(by: keys)
        #expect(found == record())
        #expect(header.kind == .segment && header.previous == before && header.slot == slot)
        #expect(slot.name == "log/0000000000000003/0000000000001a2b")
        #expect(slot.description == "3/1a2b")
    }

    @Test func `each changed byte of a record is noticed, and each missing one`() throws {
        let bytes = try SealedRecord(.segment, record(), at: slot, after: before, by: keys).bytes
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(throws: StoreError.self, "byte \(index)") {
                try SealedRecord(changed, at: slot).open(by: keys)
            }
        }
        for count in 0..<bytes.count {
            #expect(throws: StoreError.self, "\(count) bytes") {
                try SealedRecord(Array(bytes.prefix(count)), at: slot).open(by: keys)
            }
        }
        #expect(throws: StoreError.self) { try SealedRecord(bytes + [0], at: slot).open(by: keys) }
    }

    @Test func `the summary of a record is read without its pages`() throws {
        let sealed = try SealedRecord(.segment, record(), at: slot, after: before, by: keys)
        let start = SealedRecord(Array(sealed.bytes[SealedRecord.summaryRange]), at: slot)
        let (header, found) = try start.summary(by: keys)
        var expected = record()
        (expected.pages, expected.note) = ([], .init())
        #expect(found == expected && header.kind == .segment)
        #expect(throws: StoreError.self) { try start.open(by: keys) }
        // Parts of two records of the same slot do not fit together.
        let other = try SealedRecord(.segment, record(), at: slot, after: before, by: keys)
        for range in [RecordHeader.byteCount..<208, 208..<sealed.bytes.count] {
            var mixed = sealed.bytes
            mixed.replaceSubrange(range, with: other.bytes[range])
            #expect(throws: StoreError.self) { try SealedRecord(mixed, at: slot).open(by: keys) }
        }
    }

    @Test func `a record does not open in another slot or with another key`() throws {
        let bytes = try SealedRecord(.segment, record(), at: slot, after: before, by: keys).bytes
        let moved = #expect(throws: StoreError.self) {
            try SealedRecord(bytes, at: slot.next).open(by: keys)
        }
        #expect(moved?.code == .remoteDamaged)
        let other = #expect(throws: StoreError.self) {
            try SealedRecord(bytes, at: slot).open(by: .testing(8))
        }
        #expect(other?.code == .wrongKey)
        // The header names the slot and the key; the encryption covers both.
        var renamed = bytes
        renamed.replace(from: 40, with: slot.next.number.bigEndianBytes)
        let forged = #expect(throws: StoreError.self) {
            try SealedRecord(renamed, at: slot.next).open(by: keys)
        }
        #expect(forged?.code == .remoteDamaged)
    }

    @Test func `the same content is sealed with another key each time`() throws {
        let sealed = try (0..<20).map { _ in
            try SealedRecord(.segment, record(), at: slot, after: before, by: keys)
        }
        #expect(Set(try sealed.map { try $0.header.seed }).count == 20)
        #expect(Set(sealed.map { $0.bytes[RecordHeader.byteCount...].prefix(32) }).count == 20)
    }

    @Test func `the digest depends on each page's number and tag`() {
        let tag = [UInt8](repeating: 1, count: 16)[...]
        let sum = keys.digest(ofPage: 1, tag: tag) &+ keys.digest(ofPage: 2, tag: tag)
        #expect(sum == keys.digest(ofPage: 2, tag: tag) &+ keys.digest(ofPage: 1, tag: tag))
        #expect(keys.digest(ofPage: 1, tag: tag) != keys.digest(ofPage: 2, tag: tag))
        #expect(
            keys.digest(ofPage: 1, tag: tag)
                != keys.digest(ofPage: 1, tag: [UInt8](repeating: 2, count: 16)[...]))
    }

    @Test func `a description reads as it was written, and nothing else does`() throws {
        let new = ReplicaDescription(
            salt: [UInt8](repeating: 0xab, count: 16), profile: "sqlcipher3", pageByteCount: 1024)
        let read = try ReplicaDescription(new.bytes, at: "memory")
        #expect(read == new && read.saltBytes == [UInt8](repeating: 0xab, count: 16))
        #expect(read.replicaNumber.count == 16)
        for text in ["", "{}", "hello", #"{"format":"x"}"#] {
            let error = #expect(throws: StoreError.self) {
                try ReplicaDescription(Array(text.utf8), at: "memory")
            }
            #expect(error?.code == .remoteDamaged)
        }
    }

    @Test func `a position reads as it was printed, and nothing else does`() throws {
        let position = ReplicaPosition(slot, Array(0...31))
        #expect(position.description == "3/1a2b-0001020304050607")
        #expect(ReplicaPosition("3/1a2b-0001020304050607") == position)
        for text in ["", "3/1a2b", "3/1a2b-", "0/1-0001020304050607", "3-0001020304050607"] {
            #expect(ReplicaPosition(text) == nil, "\(text)")
        }
        #expect(Slot(name: slot.name) == slot)
        for name in ["log/3/1a2b", "log/x", slot.name + "/", slot.name.uppercased()] {
            #expect(Slot(name: name) == nil, "\(name)")
        }
    }

    @Test func `a record of a wrong clock has the time of the remote`() {
        var record = record()
        #expect(record.moment == record.time)
        record.time = Date(timeIntervalSince1970: 4_070_908_800)
        #expect(record.moment == record.remoteTime)
        record.remoteTime = nil
        #expect(record.moment == record.time)
    }
}
