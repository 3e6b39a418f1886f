#ifndef COFFER_LINE_EDITOR_H
#define COFFER_LINE_EDITOR_H

/// Reads lines from the terminal, with editing and history, by libedit.
///
/// libedit is loaded when it is needed: a program runs without it as well. Its functions take
/// variable arguments, which Swift cannot call.
typedef struct coffer_line_editor coffer_line_editor;

/// - Parameter interruption: Becomes readable to end `coffer_line_editor_read` without a line.
/// - Returns: NULL if libedit is not installed or does not know the terminal.
coffer_line_editor *coffer_line_editor_open(int interruption);

/// Reads one line.
///
/// - Parameter line: Set to the line as UTF-8, without its newline, which the caller frees.
/// - Returns: 1 for a line, 2 for one with bytes that are not UTF-8 or with a NUL, 0 at the end of
///   the input, -1 if it was interrupted.
int coffer_line_editor_read(coffer_line_editor *editor, const char *prompt, char **line);

/// Adds a text to the history, which is in memory only.
void coffer_line_editor_remember(coffer_line_editor *editor, const char *text);

void coffer_line_editor_close(coffer_line_editor *editor);

#endif
