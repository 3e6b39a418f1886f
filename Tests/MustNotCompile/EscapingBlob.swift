// error: implicit conversion to 'BlobReader?' is consuming
import Coffer

func keepBlob(of connection: Connection) throws {
    var kept: BlobReader?
    try connection.withBlob("data", in: "t", row: 1) { blob in kept = blob }
    _ = kept
}
