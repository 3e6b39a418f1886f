// error: 'nil' is not compatible with expected argument type 'any Actor'
import Coffer

final class Numbers { var last = 0 }

func follow(_ store: Store) -> ObservationToken {
    let numbers = Numbers()
    return store.observe { tx in
        try tx.rows("SELECT 1").count
    } onError: { _ in
    } onChange: {
        numbers.last = $0
    }
}
