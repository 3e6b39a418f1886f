// error: instance method 'bind(_:at:)' requires that
import Coffer

func bind(_ value: Any, on statement: Statement) throws {
    try statement.bind(value, at: 0)
}
