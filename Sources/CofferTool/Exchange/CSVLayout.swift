/// A problem with a record, and its location.
struct RecordProblem: Error {
    /// The number of the line, from 1.
    let line: Int
    let message: String
    var hint: String?
}

/// Finds where the records of a CSV text end, checks its quotes, and makes it safe for SwiftCSV.
///
/// SwiftCSV reads a text by `Character` and uses Unicode's definition of a newline and a space. In
/// UTF-8 it would merge a delimiter with a combining mark after it. In bytes read as Latin-1 it
/// would end a record at the second byte of `Å` (0x85, a newline there) and drop spaces at the
/// start of a field. It also reads `ab""c` as `ab"c`, and accepts a quote that never ends.
///
/// So the text is mapped for SwiftCSV: each byte becomes the letter U+0100 plus that byte, except
/// visible ASCII characters, the delimiter, and the LF after a record. Such a letter is not a
/// newline or a space and combines with nothing. `CSVRecords` maps the letters back. The quotes are
/// checked here, where the line is known.
struct CSVLayout {
    let delimiter: UInt8

    /// A run of whole records.
    struct Part {
        /// UTF-8 text for SwiftCSV; every record ends with LF.
        var text: [UInt8] = []
        /// The line, from 1, on which each record begins.
        var lines: [Int] = []
        /// Bytes of the input that the records took.
        var byteCount = 0
        /// Lines of the input that the records took.
        var lineCount = 0
        /// Whether the text has letters that represent bytes.
        var isMapped = false
    }

    private enum Place {
        case fieldStart, plain, quoted
        /// After a quote in a quoted field: its end, or the first of two.
        case quote
    }

    /// The state of the scan at a byte.
    private struct State {
        var place = Place.fieldStart
        var recordLine: Int
        var line: Int
    }

    /// Returns the whole records at the start of the bytes.
    ///
    /// - Parameters:
    ///   - line: Number of the first line.
    ///   - isLast: Whether nothing follows the bytes, so that the rest is also a record.
    /// - Throws: `RecordProblem` for quotes that violate RFC 4180.
    func part(
        of bytes: UnsafeBufferPointer<UInt8>, line: Int, isLast: Bool
    ) throws(RecordProblem) -> Part {
        var part = Part()
        let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 2 * bytes.count + 1)
        defer { output.deallocate() }
        var count = 0
        var completeCount = 0
        var state = State(recordLine: line, line: line)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == 0x0d, state.place != .quoted {
                // CR LF ends a record as LF does; the next chunk may begin with the LF.
                if index + 1 == bytes.count, !isLast { break }
                guard index + 1 < bytes.count, bytes[index + 1] == 0x0a else {
                    throw RecordProblem(
                        line: state.line, message: "a carriage return without a line feed",
                        hint: "Put the field in quotes, or end the lines with LF or CR LF.")
                }
                index += 1
                continue
            }
            index += 1
            if byte == 0x0a {
                state.line += 1
                if state.place != .quoted {
                    output[count] = byte
                    count += 1
                    completeCount = count
                    part.lines.append(state.recordLine)
                    part.byteCount = index
                    state.place = .fieldStart
                    state.recordLine = state.line
                    continue
                }
            } else {
                try state.place = next(state.place, byte, state.line)
            }
            if byte > 0x20 && byte < 0x7f || byte == delimiter {
                output[count] = byte
                count += 1
            } else {
                part.isMapped = true
                output[count] = 0xc4 | byte >> 6
                output[count + 1] = 0x80 | byte & 0x3f
                count += 2
            }
        }
        if isLast, part.byteCount < bytes.count {
            guard state.place != .quoted else {
                throw RecordProblem(
                    line: state.recordLine, message: "a quote that begins in this record never ends"
                )
            }
            output[count] = 0x0a
            completeCount = count + 1
            part.lines.append(state.recordLine)
            part.byteCount = bytes.count
            state.recordLine = state.line + 1
        }
        part.lineCount = state.recordLine - line
        part.text = Array(UnsafeBufferPointer(start: output, count: completeCount))
        return part
    }

    /// The state of the scan after a byte that does not end a line.
    private func next(_ place: Place, _ byte: UInt8, _ line: Int) throws(RecordProblem) -> Place {
        switch place {
        case .fieldStart:
            if byte == 0x22 { return .quoted }
            return byte == delimiter ? .fieldStart : .plain
        case .plain:
            if byte == 0x22 {
                throw RecordProblem(
                    line: line, message: "a quote inside a field that does not begin with one",
                    hint: "Put the whole field in quotes and double the quotes in it.")
            }
            return byte == delimiter ? .fieldStart : .plain
        case .quoted: return byte == 0x22 ? .quote : .quoted
        case .quote:
            if byte == 0x22 { return .quoted }
            if byte == delimiter { return .fieldStart }
            throw RecordProblem(
                line: line, message: "something is between a closing quote and the delimiter",
                hint: "Double each quote inside a quoted field.")
        }
    }
}
