// note: candidate requires that 'Unsupported' conform to 'ValueConvertible'
import Coffer

struct Unsupported {}

func bind(_ value: Unsupported, on connection: Connection) throws {
    try connection.execute("INSERT INTO note VALUES (\(value))")
}
