#include "line_editor.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

// Types and numbers of <histedit.h>, which need not be installed where this is compiled.
typedef struct editline EditLine;
typedef struct history_w HistoryW;
typedef struct {
    int num;
    const wchar_t *str;
} HistEventW;

enum {
    EL_PROMPT = 0,
    EL_EDITOR = 2,
    EL_SIGNAL = 3,
    EL_HIST = 10,
    EL_GETCFN = 13,
    H_SETSIZE = 1,
    H_ENTER = 10,
    H_SETUNIQUE = 20,
};

struct coffer_line_editor {
    EditLine *edit;
    HistoryW *history;
    int interruption;
    int is_interrupted;
    /// Whether the line has bytes that no text shows.
    int is_unreadable;
    wchar_t prompt[64];

    const wchar_t *(*wgets)(EditLine *, int *);
    int (*wset)(EditLine *, int, ...);
    void (*end)(EditLine *);
    int (*history_w)(HistoryW *, HistEventW *, int, ...);
    void (*history_wend)(HistoryW *);
};

// libedit gives its callbacks no context, and there is one terminal.
static coffer_line_editor *current;

static const wchar_t *prompt(EditLine *edit) {
    (void)edit;
    return current ? current->prompt : L"";
}

/// Waits for a byte of the terminal. Returns 1, or 0 at the end, or -1 with `errno`.
static int read_byte(unsigned char *byte) {
    struct pollfd places[2] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = current->interruption, .events = POLLIN},
    };
    for (;;) {
        if (poll(places, 2, -1) < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        if (places[1].revents) {
            current->is_interrupted = 1;
            errno = ECANCELED;
            return -1;
        }
        ssize_t count = read(STDIN_FILENO, byte, 1);
        if (count >= 0 || errno != EINTR) return (int)count;
    }
}

/// Reads a character of UTF-8, whatever the locale is. Passes over bytes that are not UTF-8, and
/// notes that there were some.
static int read_character(EditLine *edit, wchar_t *character) {
    (void)edit;
    uint32_t scalar = 0, minimum = 0;
    int missing = 0;
    for (;;) {
        unsigned char byte = 0;
        int result = read_byte(&byte);
        if (result != 1) return result;
        int is_continuation = (byte & 0xc0) == 0x80;
        if (is_continuation != (missing > 0)) current->is_unreadable = 1;
        if (byte < 0x80) {
            *character = byte;
            return 1;
        }
        if (is_continuation) {
            if (missing == 0) continue;
            scalar = scalar << 6 | (byte & 0x3f);
            if (--missing > 0) continue;
            if (scalar < minimum || scalar > 0x10ffff || (scalar >= 0xd800 && scalar < 0xe000)) {
                current->is_unreadable = 1;
                continue;
            }
            *character = (wchar_t)scalar;
            return 1;
        }
        if (byte >= 0xf8) {
            current->is_unreadable = 1;
            missing = 0;
            continue;
        }
        missing = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
        minimum = missing == 3 ? 0x10000 : missing == 2 ? 0x800 : 0x80;
        scalar = byte & (0x3f >> missing);
    }
}

/// - Returns: The text as UTF-8, which the caller frees; NULL without memory.
static char *encoded(const wchar_t *text, size_t count) {
    char *result = malloc(count * 4 + 1), *next = result;
    if (!result) return NULL;
    for (size_t index = 0; index < count; index++) {
        uint32_t scalar = (uint32_t)text[index];
        if (scalar < 0x80) {
            *next++ = (char)scalar;
        } else if (scalar < 0x800) {
            *next++ = (char)(0xc0 | scalar >> 6);
            *next++ = (char)(0x80 | (scalar & 0x3f));
        } else if (scalar < 0x10000) {
            *next++ = (char)(0xe0 | scalar >> 12);
            *next++ = (char)(0x80 | (scalar >> 6 & 0x3f));
            *next++ = (char)(0x80 | (scalar & 0x3f));
        } else {
            *next++ = (char)(0xf0 | scalar >> 18);
            *next++ = (char)(0x80 | (scalar >> 12 & 0x3f));
            *next++ = (char)(0x80 | (scalar >> 6 & 0x3f));
            *next++ = (char)(0x80 | (scalar & 0x3f));
        }
    }
    *next = 0;
    return result;
}

/// - Returns: The text as wide characters, which the caller frees; NULL without memory.
static wchar_t *decoded(const char *text) {
    const unsigned char *next = (const unsigned char *)text;
    wchar_t *result = malloc((strlen(text) + 1) * sizeof(wchar_t)), *place = result;
    if (!result) return NULL;
    while (*next) {
        unsigned char first = *next++;
        int missing = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
        uint32_t scalar = missing ? first & (0x3f >> missing) : first;
        for (; missing > 0 && (*next & 0xc0) == 0x80; missing--) {
            scalar = scalar << 6 | (*next++ & 0x3f);
        }
        *place++ = (wchar_t)scalar;
    }
    *place = 0;
    return result;
}

coffer_line_editor *coffer_line_editor_open(int interruption) {
#ifdef __APPLE__
    void *library = dlopen("libedit.3.dylib", RTLD_NOW | RTLD_LOCAL);
#else
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!library || current) return NULL;
    EditLine *(*init)(const char *, FILE *, FILE *, FILE *) = dlsym(library, "el_init");
    HistoryW *(*history_winit)(void) = dlsym(library, "history_winit");
    coffer_line_editor *editor = calloc(1, sizeof *editor);
    if (!editor) return NULL;
    editor->interruption = interruption;
    editor->wgets = dlsym(library, "el_wgets");
    editor->wset = dlsym(library, "el_wset");
    editor->end = dlsym(library, "el_end");
    editor->history_w = dlsym(library, "history_w");
    editor->history_wend = dlsym(library, "history_wend");
    if (!init || !history_winit || !editor->wgets || !editor->wset || !editor->end
        || !editor->history_w || !editor->history_wend) {
        free(editor);
        return NULL;
    }
    // libedit asks the locale how wide a character is.
    setlocale(LC_CTYPE, "");
    // Prompts and echo go to standard error: standard output has only rows.
    editor->edit = init("coffer", stdin, stderr, stderr);
    editor->history = history_winit();
    if (!editor->edit || !editor->history) {
        coffer_line_editor_close(editor);
        return NULL;
    }
    HistEventW event;
    editor->history_w(editor->history, &event, H_SETSIZE, 1000);
    editor->history_w(editor->history, &event, H_SETUNIQUE, 1);
    editor->wset(editor->edit, EL_EDITOR, L"emacs");
    editor->wset(editor->edit, EL_SIGNAL, 0);
    editor->wset(editor->edit, EL_PROMPT, prompt);
    editor->wset(editor->edit, EL_HIST, editor->history_w, editor->history);
    editor->wset(editor->edit, EL_GETCFN, read_character);
    current = editor;
    return editor;
}

int coffer_line_editor_read(coffer_line_editor *editor, const char *text, char **line) {
    mbstowcs(editor->prompt, text, sizeof editor->prompt / sizeof *editor->prompt - 1);
    editor->is_interrupted = 0;
    editor->is_unreadable = 0;
    int count = 0;
    const wchar_t *found = editor->wgets(editor->edit, &count);
    if (editor->is_interrupted) return -1;
    if (!found || count <= 0) return 0;
    size_t length = (size_t)count;
    if (found[length - 1] == L'\n') length--;
    if (editor->is_unreadable || wmemchr(found, 0, length)) return 2;
    *line = encoded(found, length);
    return *line ? 1 : 0;
}

void coffer_line_editor_remember(coffer_line_editor *editor, const char *text) {
    wchar_t *wide = decoded(text);
    if (!wide) return;
    HistEventW event;
    editor->history_w(editor->history, &event, H_ENTER, wide);
    free(wide);
}

void coffer_line_editor_close(coffer_line_editor *editor) {
    if (editor->edit) editor->end(editor->edit);
    if (editor->history) editor->history_wend(editor->history);
    if (current == editor) current = NULL;
    free(editor);
}
