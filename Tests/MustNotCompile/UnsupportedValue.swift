// error: instance method 'appendInterpolation' requires that 'Unsupported' conform to
import Coffer

struct Unsupported {}

func bind(_ value: Unsupported, on connection: Connection) throws {
    try connection.execute("INSERT INTO note VALUES (\(value))")
}
