import Foundation
import Testing

@testable import Coffer

/// `RawRepresentable` types whose raw value is a UUID, a date or a struct. Swift encodes such types
/// as a container with the single key `rawValue`.
@Suite(.againstHanging, .onOwnThreads) struct RawValueTests {
    struct DeviceID: RawRepresentable, Codable, Hashable, ValueConvertible {
        let rawValue: UUID
    }

    struct Token: RawRepresentable, Codable, Hashable { let rawValue: Data }
    struct Moment: RawRepresentable, Codable, Hashable { let rawValue: Date }
    struct Point: Codable, Hashable { var x, y: Int }
    struct Place: RawRepresentable, Codable, Hashable { let rawValue: Point }

    /// Not its raw value alone.
    struct Version: RawRepresentable, Codable, Hashable {
        let rawValue: UUID
        var note: String?

        init?(rawValue: UUID) { self.init(rawValue: rawValue, note: nil) }
        init(rawValue: UUID, note: String?) { (self.rawValue, self.note) = (rawValue, note) }
    }

    /// Another value under the same key.
    struct Masked: RawRepresentable, Codable, Hashable {
        let rawValue: Data

        init(rawValue: Data) { self.rawValue = rawValue }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            rawValue = Data(try container.decode(Data.self, forKey: .rawValue).map { $0 ^ 255 })
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(Data(rawValue.map { $0 ^ 255 }), forKey: .rawValue)
        }

        private enum CodingKeys: CodingKey { case rawValue }
    }

    /// A key that decoding does not ask for.
    struct Wider: RawRepresentable, Codable, Hashable {
        let rawValue: UUID

        init(rawValue: UUID) { self.rawValue = rawValue }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(rawValue, forKey: .rawValue)
            try container.encode(1, forKey: .extra)
        }

        private enum Keys: CodingKey { case rawValue, extra }
    }

    struct Device: Record, Equatable {
        var id: DeviceID
        var parent: DeviceID?
        var token: Token
        var seen: Moment
        var place: Place
        var version: Version
        var masked: Masked
    }

    struct WiderDevice: Record {
        var id: Int
        var wider: Wider
    }

    private func device(parent: DeviceID? = nil) -> Device {
        Device(
            id: DeviceID(rawValue: UUID()), parent: parent, token: Token(rawValue: Data([0, 255])),
            seen: Moment(rawValue: Date(timeIntervalSince1970: 1_700_000_000.5)),
            place: Place(rawValue: Point(x: 1, y: -2)),
            version: Version(rawValue: UUID(), note: "first"),
            masked: Masked(rawValue: Data([1, 2])))
    }

    @Test func `a column has the raw value itself`() throws {
        let store = try Store(.memory)
        let device = device()
        let second = self.device(parent: device.id)
        try store.write { tx in
            try tx.create(Device.self)
            try tx.insert(device)
            try tx.insert(second)
        }
        try store.read { tx throws in
            #expect(
                try tx.columns(of: "device").map(\.declaredType)
                    == ["BLOB", "BLOB", "BLOB", "REAL", "TEXT", "TEXT", "BLOB"])
            let row = try #require(try tx.firstRow("SELECT * FROM device WHERE parent IS NULL"))
            let id = device.id.rawValue.asValue()
            #expect(row["id"] == id)
            #expect(row["token"] == .blob(device.token.rawValue))
            #expect(row["place"] == .text(#"{"x":1,"y":-2}"#))
            #expect(row["masked"] == .blob(Data([254, 253])))
            #expect("\(String(describing: row["version"]))".contains("first"))
            let found = try tx.fetch(Device.all)
            #expect(Set(found.map(\.id)) == [device.id, second.id])
            #expect(found.contains(device) && found.contains(second))
        }
    }

    @Test func `a key and a condition find it`() throws {
        let store = try Store(.memory)
        let first = device()
        let second = device(parent: first.id)
        try store.write { tx in
            try tx.create(Device.self)
            try tx.insert(first)
            try tx.insert(second)
            try tx.update(first)
        }
        try store.read { tx throws in
            #expect(try tx.find(Device.self, first.id) == first)
            #expect(try tx.fetch(Device.where(\.parent == first.id)) == [second])
            #expect(try tx.fetch(Device.where(\.parent == nil)) == [first])
            #expect(try tx.fetch(Device.where(\.token == first.token)).count == 2)
            #expect(try tx.fetch(Device.where(\.masked == first.masked)).count == 2)
            #expect(try tx.fetch(Device.where(\.seen == first.seen)).count == 2)
        }
    }

    @Test func `what else a type encodes is refused, not lost`() throws {
        let store = try Store(.memory)
        try store.write { tx in try tx.create(WiderDevice.self) }
        let error = #expect(throws: StoreError.self) {
            try store.write { tx in
                try tx.insert(WiderDevice(id: 1, wider: Wider(rawValue: UUID())))
            }
        }
        #expect(error?.code == .mismatch)
        #expect(error?.message.contains("extra") == true)
    }
}
